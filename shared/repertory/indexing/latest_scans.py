"""The latest scan of every source, and the items that the index should hold."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from repertory.catalogue.item import Item
from repertory.index.vectors import State
from repertory.indexing.scan import ScanResult, admitted, merge
from repertory.review.gate import Gate
from repertory.sources.configured import Catalogue
from repertory.sources.source import Problem
from repertory.stats import SourceState

SUDDENLY_EMPTY = (
    "It is suddenly empty; its items are kept. If it is meant to be empty, run `repertory rebuild`."
)


class LatestScans:
    """A catalogue and the latest scan of each of its sources.

    Attributes:
        catalogue: The catalogue.
        items: What all sources offer together, by id.
    """

    def __init__(self, seen: Mapping[str, float], gate: Gate | None = None) -> None:
        """Start without scans.

        Args:
            seen: When each source was last read whole by an earlier process, in Unix seconds.
            gate: Withholds items; without one, all pass.
        """
        self._gate = gate
        self.catalogue = Catalogue(())
        self.items: dict[str, Item] = {}
        self._names: frozenset[str] = frozenset()
        self._by_source: dict[str, ScanResult] = {}  # as the gate lets them pass
        self._whole: dict[str, ScanResult] = {}
        self._seen = dict(seen)
        self._problems: list[Problem] = []

    def adopt(self, catalogue: Catalogue) -> None:
        """Follow another catalogue; scans of unchanged sources stay valid."""
        identities = {source.name: source.identity() for source in catalogue.sources}
        sources = {source.name: source for source in catalogue.sources}
        self._whole = {
            name: msgspec.structs.replace(one, source=sources[name])
            for name, one in self._whole.items()
            if identities.get(name) == one.source.identity()
        }
        self._by_source = {name: self._admitted(one) for name, one in self._whole.items()}
        self.catalogue = catalogue
        self._names = frozenset(identities)
        self._merge()

    def add(self, result: ScanResult) -> None:
        """Replace a source's scan; the result of a source that left the catalogue is ignored."""
        name = result.source.name
        if name not in self._names:
            return
        self._whole[name] = result
        self._by_source[name] = self._admitted(result)
        if not result.error:
            self._seen[name] = result.at
        self._merge()

    def review(self) -> bool:
        """Follow what people approved since the last call; whether they did."""
        if self._gate is None or not self._gate.has_news():
            return False
        self._by_source = {name: self._admitted(one) for name, one in self._whole.items()}
        self._merge()
        return True

    def _admitted(self, result: ScanResult) -> ScanResult:
        return result if self._gate is None else admitted(result, self._gate)

    @property
    def is_complete(self) -> bool:
        """Whether every source was scanned."""
        return len(self._by_source) == len(self.catalogue.sources)

    @property
    def are_files_read(self) -> bool:
        """Whether every source of files was scanned; servers may still be starting."""
        return all(
            source.name in self._by_source
            for source in self.catalogue.sources
            if source.folder is not None
        )

    @property
    def problems(self) -> list[Problem]:
        """Every problem of the catalogue and of the scans."""
        return [*self.catalogue.problems, *self._problems]

    def has(self, source: str) -> bool:
        """Whether the catalogue has a source of this name."""
        return source in self._names

    def same(self, other: Catalogue) -> frozenset[str]:
        """The names of the sources that are the same in another catalogue."""
        identities = {source.name: source.identity() for source in other.sources}
        own = {source.name: source.identity() for source in self.catalogue.sources}
        return frozenset(name for name, one in own.items() if identities.get(name) == one)

    def may_offer(self, item: str, metadata_hash: str) -> bool:
        """Whether the sources offer an item with this hash, or may do so where they are unread.

        Args:
            item: Its id.
            metadata_hash: The hash; empty for an item that is not offered at all.
        """
        if found := self.items.get(item):
            return found.metadata_hash() == metadata_hash
        return not metadata_hash or any(scan.keeps(item) for scan in self._by_source.values())

    def keeps(self, state: State) -> bool:
        """Whether an indexed item that no scan returned may still exist."""
        scan = self._by_source.get(state.source)
        return scan.keeps(state.item) if scan else self.has(state.source)

    @property
    def unchanged(self) -> Counter[str]:
        """How many items of each source were not read again, for their files have not changed."""
        scans = self._by_source.items()
        return Counter({name: len(one.scan.unchanged) for name, one in scans if one.scan})

    @property
    def withheld(self) -> frozenset[str]:
        """The names of the sources with items in quarantine."""
        scans = self._by_source.items()
        return frozenset(name for name, one in scans if one.scan and one.scan.withheld)

    def status(self, indexed: Counter[str], emptied: frozenset[str]) -> list[SourceState]:
        """The state of each source.

        Args:
            indexed: How many items of each source are indexed.
            emptied: The sources that suddenly offer nothing.
        """
        offered = Counter(item.source for item in self.items.values()) + self.unchanged
        states = []
        for source in self.catalogue.sources:
            name = source.name
            scan = self._by_source.get(name)
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
                    is_starting=scan is None,
                    seen=self._seen.get(name, 0.0),
                    quarantined=self._gate.quarantined(name) if self._gate else 0,
                    visible_to=source.visible_to,
                )
            )
        return states

    def _merge(self) -> None:
        sources = self.catalogue.sources
        scans = [self._by_source[one.name] for one in sources if one.name in self._by_source]
        self.items, self._problems = merge(scans, self.catalogue)


def _stale(scan: ScanResult | None, indexed: int, offered: int, *, partial: bool) -> int:
    """How many items of a source are kept although it cannot be read now."""
    if scan is not None and scan.scan is not None and scan.scan.stale:
        return indexed
    return max(indexed - offered, 0) if partial else 0
