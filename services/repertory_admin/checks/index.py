"""The checks of the index in this process, or of the server and the Redis in its place."""

from collections.abc import Iterator
from datetime import date

from repertory.errors import NothingIndexedError, RepertoryError
from repertory.indexing import keyword_sync
from repertory.local.one_shot import Repertory
from repertory.remote.client import Client
from repertory.search.answer import Mode
from repertory.search.query import query_of
from repertory.text import counted
from repertory_admin.checks.finding import Finding, State


def server(client: Client) -> Iterator[Finding]:
    """Whether a server answers, and which of its parts are unavailable."""
    try:
        stats = client.stats()
    except RepertoryError as error:
        yield Finding(State.BAD, "server", str(error))
        return
    count = counted(stats.items, "item")
    place = f" in {stats.collection}" if stats.collection else ""
    items = f"{count}{place}" if stats.items or place else "no items yet"
    yield Finding(State.GOOD, "server", f"answers at {client.remote.url}: {items}")
    for why in dict.fromkeys([*stats.missing.values(), *stats.troubles]):
        yield Finding(State.BAD, "server", why)
    if stats.queue.failed:
        failed = counted(stats.queue.failed, "job")
        yield Finding(State.BAD, "queue", f"{failed} failed; see `repertory queue list`")
    if stats.watch and stats.watch.pending:
        items = counted(stats.watch.pending, "item")
        yield Finding(State.UNSURE, "queue", f"{items} not indexed yet")
    for name, why in (stats.watch.polling if stats.watch else {}).items():
        yield Finding(State.UNSURE, f"source {name}", f"scanned at intervals, because {why}")
    for one in stats.unused:
        vectors = counted(one.points, "vector")
        text = (
            f"{one.collection}: {vectors}, unused since {date.fromtimestamp(one.since)}; it is "
            "removed after REPERTORY_WATCH_KEEP_UNUSED days"
        )
        yield Finding(State.UNSURE, "unused index", text)


def redis(url: str) -> Iterator[Finding]:
    """Whether a team's Redis answers, and evicts no keys."""
    from repertory.coordination.redis_server import RedisServer  # noqa: PLC0415 - slow, optional

    try:
        policy = RedisServer(url).eviction_policy()
    except RepertoryError as error:
        yield Finding(State.BAD, "Redis", str(error))
        return
    if policy == "noeviction":
        yield Finding(State.GOOD, "Redis", "answers, and evicts nothing")
        return
    text = (
        f"its maxmemory-policy is {policy}: when its memory is full, it deletes waiting jobs, and "
        "saves are found late; set it to noeviction"
    )
    yield Finding(State.UNSURE, "Redis", text)


def index(repertory: Repertory) -> Iterator[Finding]:
    """Whether the store opens and the keyword snapshot loads."""
    try:
        stats = repertory.stats()
        answer = repertory.search(query_of(repertory.settings.values, "repertory"))
    except NothingIndexedError:
        yield Finding(State.UNSURE, "index", "nothing is indexed here yet; run `repertory index`")
        return
    except RepertoryError as error:
        yield Finding(State.BAD, "index", str(error))
        return
    if answer.mode is Mode.HYBRID:
        items, points = counted(answer.items, "item"), counted(stats.points or 0, "point")
        yield Finding(State.GOOD, "index", f"{items}, {points} in {stats.collection}")
    else:
        yield Finding(State.BAD, "index", answer.degraded)
    if keyword_sync.load(repertory.parts.coordination.snapshots, stats.collection):
        yield Finding(State.GOOD, "keyword index", "its snapshot can be loaded")
    else:
        text = "its snapshot is missing or damaged: `repertory index` builds it again"
        yield Finding(State.BAD, "keyword index", text)
