"""Known tools as scan results, because a one-shot search asks no server."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from repertory.catalogue.item import Item, item_key
from repertory.catalogue.records import items_of
from repertory.index.vectors import Collection
from repertory.indexing.scan import ScanResult
from repertory.review.gate import is_judgement
from repertory.sources.source import Problem, Scan, Source
from repertory.watch_status import SourceState, WatchStatus


def known_tools(
    servers: Sequence[Source], collection: Collection | None, last: WatchStatus
) -> list[ScanResult]:
    """The tools that each server offered when it was last asked.

    Args:
        servers: The sources that ask a server.
        collection: The active collection, if any.
        last: The report of the last command.

    Returns:
        A scan result for each server. If it was never asked, there are no items and the time is 0.

    Raises:
        StoreError: The collection cannot be read.
    """
    states = {one.name: one for one in last.sources}
    items: dict[str, list[Item]] = {server.name: [] for server in servers}
    if collection is not None:
        keys = [item_key(state.item) for state in collection.states() if state.source in items]
        for item in items_of(collection.records(keys).values()):
            # Policies of tools come from the configuration and are applied again.
            items[item.source].append(item.under(None))
    return [
        _known(server, items[server.name], states.get(server.name), last.problems)
        for server in servers
    ]


def _known(
    server: Source, items: list[Item], last: SourceState | None, problems: Iterable[Problem]
) -> ScanResult:
    # A problem with the server's name as its path repeats the error. Problems between items are
    # found again. So are the gate's, because a person may have approved the items by now.
    own = [
        replace(one, sources=())
        for one in problems
        if one.sources == (server.name,) and one.path != server.name and not is_judgement(one)
    ]
    # If the server was not trusted then, it is trusted now, so the error is obsolete.
    error = last.error if last and not last.awaits_trust else ""
    return ScanResult(
        source=server,
        scan=Scan(items=sorted(items, key=lambda item: item.id), problems=own),
        error=error,
        at=last.seen if last else 0.0,
        is_known=True,
        awaits_sign_in=bool(last and last.awaits_sign_in),
        awaits_input=bool(last and last.awaits_input),
    )
