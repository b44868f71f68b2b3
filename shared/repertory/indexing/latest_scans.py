"""The latest scan of every source, and the items that the index should hold."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import takewhile

import msgspec

from repertory.catalogue.item import Item
from repertory.index.vectors import State
from repertory.indexing.judged_scan import JudgedScan
from repertory.indexing.merged import MergedItems
from repertory.indexing.scan import ChangeResult, ScanResult, SourceResult
from repertory.notices import SUDDENLY_EMPTY
from repertory.review.gate import Gate
from repertory.sources.configured import Catalogue
from repertory.sources.source import Problem, Severity
from repertory.watch_status import SourceState

# Collecting the problems of a large catalogue is slow. If it takes longer than ``QUICK_S``, it is
# limited to this share of the time.
QUICK_S, SHARE = 0.02, 0.05


class LatestScans:
    """A catalogue and the latest scan of each of its sources.

    Attributes:
        catalogue: The catalogue.
    """

    def __init__(
        self,
        seen: Mapping[str, float],
        gate: Gate | None = None,
        found: Sequence[Problem] = (),
        unlisted: int = 0,
    ) -> None:
        """Start without scans.

        Args:
            seen: When an earlier process last read each source as a whole, in Unix seconds.
            gate: Withholds items; without a gate, all pass.
            found: The problems that the earlier process found. They stay valid for items that are
                not read again.
            unlisted: The number of further problems of items that it found but did not list.
        """
        self._gate = gate
        self.catalogue = Catalogue(())
        self._names: frozenset[str] = frozenset()
        self._latest: dict[str, JudgedScan] = {}
        self._merged = MergedItems(self.catalogue)
        self._seen = dict(seen)
        self._found = found
        self._unlisted = unlisted
        self._of_items: list[Problem] = []
        self._problems: list[Problem] = []
        self._are_problems_old = False
        self._problems_due = float("-inf")

    @property
    def admitted(self) -> list[ScanResult]:
        """The scan results of all scanned sources, with the items that passed the gate."""
        return [one.admitted for one in self._in_order]

    @property
    def _in_order(self) -> list[JudgedScan]:
        """The latest scans, in the order of the catalogue."""
        names = (source.name for source in self.catalogue.sources)
        return [self._latest[name] for name in names if name in self._latest]

    @property
    def items(self) -> Mapping[str, Item]:
        """The items that all sources offer together, by id."""
        return self._merged.items

    def adopt(self, catalogue: Catalogue) -> None:
        """Follow another catalogue; scans of unchanged sources stay valid.

        The scan of a source that was not trusted then and is trusted now is dropped, because the
        source was not really read.
        """
        identities = {source.name: source.identity() for source in catalogue.sources}
        sources = {source.name: source for source in catalogue.sources}
        self._latest = {
            name: one
            for name, one in self._latest.items()
            if identities.get(name) == one.source.identity()
            and (one.source.is_trusted or not sources[name].is_trusted)
        }
        for name, one in self._latest.items():
            one.source = sources[name]
            one.scanned = msgspec.structs.replace(one.scanned, source=one.source)
        self.catalogue = catalogue
        self._names = frozenset(identities)
        self._judge_all()

    def examine(self, result: SourceResult, is_over: Callable[[], bool]) -> None:
        """Examine a result's items ahead of ``add``, on any thread; see ``Gate``.

        This stops once ``is_over``; ``add`` examines the rest.
        """
        read = result.change if isinstance(result, ChangeResult) else result.scan
        if self._gate is not None and read is not None:
            self._gate.examine(result.source, takewhile(lambda _: not is_over(), read.items))

    def add(self, result: SourceResult) -> set[str] | None:
        """Process a source's scan, or a change since its last scan.

        Results of sources that left the catalogue are ignored. So is a change after a failed scan,
        because all items that the change does not name would count as gone.

        Returns:
            The ids of the items that may differ now; None if any item may differ.
        """
        name = result.source.name
        is_change = isinstance(result, ChangeResult)
        if name not in self._names or (is_change and not self._is_read(name)):
            return set()
        latest = self._latest.setdefault(name, JudgedScan(result.source))
        before, offering = latest.result.scan, self.offering
        ids = latest.update(result, self._gate)
        if not latest.scanned.error:
            self._seen[name] = result.at
        if ids is None:
            self._merge_all()
            return None
        self._merge(ids)
        after = latest.result.scan
        assert before is not None
        assert after is not None
        kept = (before.unread_under, before.unchanged) == (after.unread_under, after.unchanged)
        return ids | (before.unread ^ after.unread) if kept and offering == self.offering else None

    def _is_read(self, name: str) -> bool:
        """Whether the last scan of a source succeeded."""
        return name in self._latest and self._latest[name].scanned.scan is not None

    def review(self) -> bool:
        """Apply approvals since the last call; whether there were any."""
        if self._gate is None or not self._gate.has_news():
            return False
        self._judge_all()
        return True

    def _judge_all(self) -> None:
        for one in self._latest.values():
            one.judge_all(self._gate)
        self._merge_all()

    def _merge_all(self) -> None:
        self._merged = MergedItems(self.catalogue)
        self._merge({item: None for one in self._latest.values() for item in one.passed})

    def _merge(self, ids: Iterable[str]) -> None:
        self._merged.update(ids, [one.passed for one in self._in_order])
        self._are_problems_old = True

    @property
    def offering(self) -> frozenset[str]:
        """The names of the sources that offer any item, even if another source's item wins."""
        kept = (name for name, count in self.unchanged.items() if count)
        return frozenset(name for name, one in self._latest.items() if one.read).union(kept)

    @property
    def is_complete(self) -> bool:
        """Whether every source was scanned."""
        return len(self._latest) == len(self.catalogue.sources)

    @property
    def are_files_read(self) -> bool:
        """Whether every source of files was scanned, while servers may still be starting."""
        return all(
            source.name in self._latest
            for source in self.catalogue.sources
            if source.folder is not None
        )

    @property
    def is_exhaustive(self) -> bool:
        """Whether every source was read completely and offers items, so missing items are gone."""
        return self._is_whole and self.offering >= self._names

    @property
    def _is_whole(self) -> bool:
        """Whether every source was read completely."""
        return self.is_complete and all(one.result.is_whole for one in self._latest.values())

    @property
    def problems(self) -> list[Problem]:
        """All problems of the catalogue and of the scans; those of files come last.

        Reports have only the first ones, and a command finds the problems of files again by
        reading them. For a large catalogue the list may be outdated, because collecting it is
        limited to ``SHARE`` of the time.
        """
        if self._are_problems_old and time.monotonic() >= self._problems_due:
            started = time.thread_time()
            found = [problem for one in self._in_order for problem in one.judgements]
            found += self._merged.problems(is_whole=self._is_whole)
            of_files = [problem for one in self._in_order for problem in one.problems]
            found += self._still({*found, *of_files})
            self._of_items = found
            self._problems = [*found, *of_files]
            self._are_problems_old = False
            took = time.thread_time() - started
            self._problems_due = time.monotonic() + (took / SHARE if took > QUICK_S else 0.0)
        return [*self.catalogue.problems, *self._problems]

    @property
    def problems_of_items(self) -> Collection[Problem]:
        """The problems that a command finds again only by reading all items."""
        return self._of_items

    @property
    def unlisted(self) -> int:
        """The number of unlisted problems of items that are not read again."""
        scans = (one.result.scan for one in self._latest.values())
        return self._unlisted if any(scan and scan.unchanged for scan in scans) else 0

    def _still(self, known: Collection[Problem]) -> list[Problem]:
        """The earlier problems of items that are not read again, without those already known.

        Problems without an item, such as that of an unused policy, belong to all items together.
        """
        if not self._found:
            return []
        kept = {
            item
            for one in self._latest.values()
            if one.result.scan
            for item in one.result.scan.unchanged
            if item not in one.passed
        }
        known = {*known, *self.catalogue.problems}
        return [
            one
            for one in self._found
            if (one.item in kept or (kept and _is_of_all(one))) and one not in known
        ]

    def may_offer(self, item: str, metadata_hash: str) -> bool:
        """Whether the sources offer an item with this hash, or may do so because they are unread.

        Args:
            item: Its id.
            metadata_hash: The hash; empty to ask whether the item may be missing.
        """
        if found := self.items.get(item):
            return found.metadata_hash() == metadata_hash
        return not metadata_hash or any(one.result.keeps(item) for one in self._latest.values())

    def keeps(self, state: State) -> bool:
        """Whether an indexed item that no scan returned may still exist."""
        latest = self._latest.get(state.source)
        return latest.result.keeps(state.item) if latest else state.source in self._names

    def holds(self, state: State, item: Item) -> bool:
        """Whether an indexed item wins over a new item of another source with the same id.

        It does if it may still exist and has precedence, so an unavailable source keeps its items.
        """
        return (
            state.source != item.source
            and self.keeps(state)
            and self._merged.precedes(state.source, item.source)
        )

    @property
    def unchanged(self) -> Counter[str]:
        """The number of items of each source that a scan kept as unchanged without reading them."""
        scans = {name: (one.passed, one.result.scan) for name, one in self._latest.items()}
        # A set difference would go through all read items, at each save.
        return Counter(
            {
                name: sum(item not in passed for item in scan.unchanged)
                for name, (passed, scan) in scans.items()
                if scan
            }
        )

    def status(self, indexed: Counter[str], emptied: frozenset[str]) -> list[SourceState]:
        """The state of each source.

        Args:
            indexed: The number of indexed items of each source.
            emptied: The sources that are suddenly empty.
        """
        offered = self._merged.per_source + self.unchanged
        states = []
        for source in self.catalogue.sources:
            name = source.name
            latest = self._latest.get(name)
            scan = latest.result if latest else None
            error = SUDDENLY_EMPTY if name in emptied else scan.error if scan else ""
            partial = scan is not None and (scan.is_partial or name in emptied)
            states.append(
                SourceState(
                    name=name,
                    type=source.type,
                    location=source.location,
                    items=indexed[name],
                    stale=_stale(scan, indexed[name], offered[name], partial=partial),
                    error=error,
                    awaits_trust=not (source.is_trusted or source.fault),
                    awaits_sign_in=scan is not None and scan.awaits_sign_in,
                    awaits_input=scan is not None and scan.awaits_input,
                    is_starting=scan is None,
                    seen=self._seen.get(name, 0.0),
                    quarantined=self._gate.quarantined(name) if self._gate else 0,
                    visible_to=source.visible_to,
                )
            )
        return states


def _stale(scan: ScanResult | None, indexed: int, offered: int, *, partial: bool) -> int:
    """The number of items of a source that are kept although they cannot be read now."""
    read = scan.scan if scan is not None else None
    if read is not None and read.stale:
        return indexed
    offered -= len(read.unchanged & read.unread) if read is not None else 0
    return max(indexed - offered, 0) if partial else 0


def _is_of_all(problem: Problem) -> bool:
    """Whether a problem concerns the items of all sources together."""
    is_about_one = problem.item or problem.path or problem.sources
    return problem.severity == Severity.WARNING and not is_about_one
