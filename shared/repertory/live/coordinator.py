"""The coordinator: looks at sources become jobs, until the index equals the sources.

It decides and does nothing itself: scanning is the watch service's, writing is the workers'. What
it knows of an index it reads from the store, so it may be ended and started again at any moment,
also in the middle of a build.
"""

import logging
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec

from repertory.catalogue.item import Item, item_key
from repertory.coordination.deltas import Deltas
from repertory.coordination.failures import Failures
from repertory.errors import StoreBusyError, StoreError
from repertory.index.keywords.snapshot import SnapshotStore
from repertory.index.vectors import State, VectorStore
from repertory.live.job import JobQueue, Lane, jobs
from repertory.live.ledger import Ledger
from repertory.pipeline.collections import (
    alias_name,
    configuration_of,
    generations,
    model_slug,
    next_alias,
)
from repertory.pipeline.diff import Changes, diff
from repertory.pipeline.scan import Scanned, unite
from repertory.sources.catalogue import Catalogue
from repertory.sources.source import Problem

POLL = 0.5  # seconds between two looks at the aliases and the failures
ASK_AGAIN = 5.0  # seconds after which a worker is asked again for a collection
LOST = 15.0  # seconds without news, and with an empty queue, after which jobs count as lost
GRACE = 30.0  # seconds that a collection is kept after nothing points at it, for searches under way
WINDOW = 2_000  # items on their way at once, which bounds the queue's memory
MOST_DELTAS = 1_000  # kept before the keyword snapshot is made anew
MOST_PROBLEMS = 200  # shown

_log = logging.getLogger(__name__)


class Coordinator:
    """Keeps the index of one catalogue equal to its sources. For one thread.

    Args:
        in_force: The alias of what is searched.
        now: The time of day, in seconds; a jump of it does no harm.
        clock: A clock that never jumps, in seconds.
    """

    def __init__(
        self,
        *,
        store: VectorStore,
        queue: JobQueue,
        deltas: Deltas,
        snapshots: SnapshotStore,
        failures: Failures,
        in_force: str,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._queue = queue
        self._deltas = deltas
        self._snapshots = snapshots
        self._failures = failures
        self._alias = in_force
        self._clock = clock
        self._now = now
        self._catalogue = Catalogue(())
        self._adopted = False
        self._looks: dict[str, Scanned] = {}
        self._seen: dict[str, float] = {}
        self._items: dict[str, Item] = {}
        self._problems: list[Problem] = []
        self._ledgers: dict[str, Ledger] = {}
        self._in_force: str | None = None
        self._target: str | None = None
        self._retiring: dict[str, float] = {}
        self._changed = self._reread = False
        self._polled = self._asked = self._kept = float("-inf")
        self._emptied: frozenset[str] = frozenset()
        self._trouble = self._refused = ""

    def adopt(self, catalogue: Catalogue) -> None:
        """Take a configuration over; what it says of sources that were looked at still holds."""
        same = {source.name: source for source in catalogue.sources}
        self._looks = {
            name: one
            for name, one in self._looks.items()
            if name in same and same[name].identity() == one.source.identity()
        }
        self._catalogue = catalogue
        self._adopted = True
        self._refused = ""
        self._target = None
        self._polled = self._asked = float("-inf")
        self._unite()

    def observe(self, scanned: Scanned) -> None:
        """Take one look at a source over."""
        name = scanned.source.name
        if name not in {source.name for source in self._catalogue.sources}:
            return  # the configuration changed while it was looked at
        self._looks[name] = scanned
        if not scanned.error:
            self._seen[name] = scanned.at
        self._unite()

    def reconcile(self) -> None:
        """Read at the next tick what the store really holds, and send what differs."""
        self._reread = True
        self._asked = float("-inf")

    def tick(self) -> None:
        """Follow what was done, send what is to be done, publish what is whole.

        A store that is away is noted in the status, and met again at the next tick. Before there is
        a configuration there is nothing to do.
        """
        if not self._adopted:
            return
        try:
            self._tick()
            self._trouble = ""
        except StoreError as error:
            if self._trouble != str(error):
                _log.warning("coordinator_waits", extra={"error": str(error)})
            self._trouble = str(error)
            self._reread = True  # jobs may have been lost meanwhile

    @property
    def is_busy(self) -> bool:
        """Whether something is on its way or waits to be sent."""
        return self._changed or any(one.pending or one.backlog for one in self._ledgers.values())

    def status(self) -> dict[str, Any]:
        """What there is and what is going on, as plain data."""
        ledger = self._ledgers.get(self._in_force or "") or self._ledgers.get(self._target or "")
        building = self._ledgers.get(self._target or "") if self._is_building else None
        return {
            "configuration": self._catalogue.hash,
            "collection": self._in_force or "",
            "trouble": self._trouble or self._refused,
            "sources": [self._source_status(source.name, ledger) for source in self._sources],
            "building": building
            and {
                "collection": building.collection,
                "done": building.total - len(building.pending),
                "total": building.total + len(building.backlog),
            },
            "pending": sum(len(one.pending) + len(one.backlog) for one in self._ledgers.values()),
            "problems": msgspec.to_builtins(self._all_problems[:MOST_PROBLEMS]),
            "errors": sum(one.severity == "error" for one in self._all_problems),
            "warnings": sum(one.severity == "warning" for one in self._all_problems),
        }

    @property
    def _sources(self) -> tuple[Any, ...]:
        return self._catalogue.sources

    @property
    def _all_problems(self) -> list[Problem]:
        return [*self._catalogue.problems, *self._problems]

    @property
    def _all_looked_at(self) -> bool:
        return len(self._looks) == len(self._sources)

    @property
    def _is_building(self) -> bool:
        return self._target is not None and self._target != self._in_force

    def _source_status(self, name: str, ledger: Ledger | None) -> dict[str, Any]:
        look = self._looks.get(name)
        source = next(source for source in self._sources if source.name == name)
        items = ledger.per_source[name] if ledger else 0
        offered = len(look.scan.items) if look and look.scan else 0
        error = look.error if look else ""
        if name in self._emptied:
            error = "It is suddenly empty; its items are kept until `repertory rebuild`."
        return {
            "name": name,
            "type": source.type,
            "location": source.location,
            "items": items,
            "stale": max(items - offered, 0) if look and (error or items > offered) else 0,
            "error": error,
            "seen": self._seen.get(name, 0.0),
        }

    def _unite(self) -> None:
        looks = [self._looks[one.name] for one in self._sources if one.name in self._looks]
        self._items, self._problems = unite(looks)
        self._changed = True

    def _tick(self) -> None:
        now = self._clock()
        if now - self._polled >= POLL:
            self._find_collections(now)
            self._forgive()
            self._polled = now
        for ledger in self._ledgers.values():
            self._follow(ledger, now)
        if self._changed:
            for ledger in self._ledgers.values():
                self._compare(ledger)
            self._changed = False
        for ledger in self._ledgers.values():
            self._send_backlog(ledger, now)
        self._publish()
        self._keep_keywords(now)
        self._retire(now)

    def _find_collections(self, now: float) -> None:
        """See which collections there are to be kept: the one in force, and the next."""
        configuration = self._catalogue.hash
        if now - self._asked >= (ASK_AGAIN if self._target is None else float("inf")):
            self._queue.begin(configuration)
            self._asked = now
        self._in_force = self._store.alias(self._alias)
        self._target = self._store.alias(next_alias(configuration))
        wanted = {self._target, self._in_force} - {None}
        own = {name for name in wanted if name and configuration_of(name) == configuration}
        for name in set(self._ledgers) - own:
            del self._ledgers[name]
        for name in own - set(self._ledgers):
            self._ledgers[name] = Ledger(name, self._deltas.position(name), now)
            self._load(self._ledgers[name])
        if self._reread:
            for ledger in self._ledgers.values():
                self._load(ledger)
            self._reread = False

    def _load(self, ledger: Ledger) -> None:
        """Read what a collection holds; what is on its way to it is sent once more."""
        ledger.position = self._deltas.position(ledger.collection)
        failed: dict[str, str] = {}
        for failure in self._failures.list():
            if failure.collection == ledger.collection:
                failed |= failure.items
        with self._store.open(ledger.collection) as collection:
            ledger.load(collection.states(), failed)
        self._changed = True

    def _follow(self, ledger: Ledger, now: float) -> None:
        delta = self._deltas.since(ledger.collection, ledger.position)
        ledger.position = delta.position
        if delta.hashes:
            ledger.confirm(delta.hashes)
            ledger.news = now
        lost = (
            ledger.pending and now - ledger.news > LOST and not any(self._queue.waiting().values())
        )
        if delta.gap or lost:
            _log.info(
                "jobs_lost", extra={"collection": ledger.collection, "items": len(ledger.pending)}
            )
            ledger.news = now
            self._load(ledger)

    def _forgive(self) -> None:
        """Wait no longer for what was given up; forget failures of what has changed since."""
        if not any(ledger.pending or ledger.failed for ledger in self._ledgers.values()):
            return
        listed = self._failures.list()
        for ledger in self._ledgers.values():
            own = [one for one in listed if one.collection == ledger.collection]
            for failure in own:
                ledger.give_up(failure.items)
            outdated = [one.id for one in own if not self._is_current(one.items)]
            if outdated and self._all_looked_at:
                self._failures.remove(outdated)
            still = {item for one in own for item in one.items}
            for item in set(ledger.failed) - still:  # somebody retries it, or took it off the list
                ledger.pending[item] = ledger.failed.pop(item)

    def _is_current(self, hashes: dict[str, str]) -> bool:
        """Whether the sources still offer something as it failed."""
        return not hashes or any(
            (self._items[item].metadata_hash() if item in self._items else "") == found
            for item, found in hashes.items()
        )

    def _compare(self, ledger: Ledger) -> None:
        changes = self._changes(ledger)
        if ledger.collection == self._in_force:
            self._emptied = changes.emptied
        ledger.backlog.clear()
        ledger.backlog.extend(changes.written)
        if changes.removed:
            self._send(ledger, [], changes.removed)

    def _changes(self, ledger: Ledger) -> Changes:
        building = ledger.collection != self._in_force
        return diff(self._items, ledger.known(), self._keeps, prune=building)

    def _keeps(self, state: State) -> bool:
        """Whether an item that was not read may be there all the same."""
        look = self._looks.get(state.source)
        if look is None:
            return state.source in {source.name for source in self._sources}
        return look.keeps(state.item)

    def _send_backlog(self, ledger: Ledger, now: float) -> None:
        room = WINDOW - len(ledger.pending)
        if not ledger.backlog or (room < WINDOW // 2 and len(ledger.backlog) > room):
            return
        items = [ledger.backlog.popleft() for _ in range(min(room, len(ledger.backlog)))]
        ledger.news = now
        self._send(ledger, items, [])

    def _send(self, ledger: Ledger, items: list[Item], removed: list[str]) -> None:
        lane = Lane.SAVES if ledger.collection == self._in_force else Lane.BUILDS
        revision = ledger.next_revision(int(self._now() * 1_000))
        # On the ledger first: what cannot be sent is read again by the next tick.
        ledger.send(items, removed, revision)
        for job in jobs(ledger.collection, revision, items, removed):
            self._queue.submit(job, lane)
        _log.info(
            "jobs_sent",
            extra={
                "collection": ledger.collection,
                "lane": lane.value,
                "items": len(items),
                "removed": len(removed),
            },
        )

    def _publish(self) -> None:
        """Put a build in force when it is whole."""
        ledger = self._ledgers.get(self._target or "")
        if ledger is None or not self._is_building or ledger.pending or ledger.backlog:
            return
        if not self._all_looked_at:
            return
        self._load(ledger)
        changes = self._changes(ledger)
        if changes.written or changes.removed:
            return  # the next tick sends it
        if carried := self._carried(ledger):
            self._send(ledger, carried, [])
            return
        if not ledger.states and self._would_lose_all():
            self._refused = (
                "The configuration offers no items at all, so what was indexed before stays in "
                "force; check that its folders are there."
            )
            return
        self._queue.keep_keywords(ledger.collection)
        self._store.set_alias(alias_name(self._catalogue.hash), ledger.collection)
        self._store.set_alias(self._alias, ledger.collection)
        _log.info(
            "collection_published",
            extra={"collection": ledger.collection, "items": len(ledger.states)},
        )
        self._in_force = ledger.collection
        self._polled = float("-inf")

    def _would_lose_all(self) -> bool:
        """Whether another configuration's items are in force, which an empty one must not replace.

        A folder that is not mounted looks like that.
        """
        name = self._in_force
        if name is None or configuration_of(name) == self._catalogue.hash:
            return False
        with self._store.open(name) as collection:
            return collection.count() > 0

    def _carried(self, ledger: Ledger) -> list[Item]:
        """The items, out of the collection in force, of what cannot be read now.

        That may be another configuration's collection.
        """
        keeps = {name: look for name, look in self._looks.items() if look.is_partial}
        if not keeps or self._in_force is None:
            return []
        with self._store.open(self._in_force) as old:
            wanted = [
                state.item
                for state in old.states()
                if state.item not in ledger.states
                and state.source in keeps
                and keeps[state.source].keeps(state.item)
            ]
            records = old.records([item_key(item) for item in wanted])
        carried = [msgspec.convert(record, Item) for record in records.values()]
        return [item for item in carried if item.id not in ledger.failed]

    def _keep_keywords(self, now: float) -> None:
        """Have the keyword snapshot made anew when many deltas have come since."""
        name = self._in_force
        if name in self._ledgers and now - self._kept >= ASK_AGAIN:
            self._kept = now
            if self._deltas.length(name) > MOST_DELTAS:
                self._queue.keep_keywords(name)

    def _retire(self, now: float) -> None:
        """Drop generations that nothing points at, once searches have let go of them."""
        name = self._in_force
        if name is None or name not in self._ledgers or self._polled != now:
            return
        configuration = self._catalogue.hash
        there = generations(self._store, configuration, model_slug(name))
        unneeded = set(there) - {self._in_force, self._target}
        for gone in set(self._retiring) - unneeded:
            del self._retiring[gone]
        for other in islice(sorted(unneeded), 1):  # one at a time: dropping may take a while
            since = self._retiring.setdefault(other, now)
            if now - since < GRACE:
                continue
            try:
                self._store.drop(other)
            except StoreBusyError:  # a search still reads it
                continue
            self._snapshots.drop(other)
            self._deltas.drop(other)
            _log.info("collection_dropped", extra={"collection": other})
