"""The latest scan of one source, and which of its items the gate lets pass."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from repertory.catalogue.item import Item
from repertory.errors import StoreError
from repertory.indexing.scan import ChangeResult, ScanResult, SourceResult
from repertory.review.gate import Gate
from repertory.sources.source import Problem, Scan, Source, Trust, warning


class JudgedScan:
    """The latest scan of one source with all changes since then, as judged by the gate.

    Attributes:
        source: The source.
        scanned: The result of the scan, without its items.
        result: The same result, but without a scan if no item may pass.
        read: The items that were read, by id.
        passed: The read items that the gate lets pass.
        judged: The gate's problems with items, by id.
        is_judged: Whether the gate could judge all items.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.scanned = self.result = ScanResult(source=source, scan=None, error="", at=0.0)
        self.read: dict[str, Item] = {}
        self.passed: dict[str, Item] = {}
        self.judged: dict[str, list[Problem]] = {}
        self.is_judged = False

    def update(self, result: SourceResult, gate: Gate | None) -> set[str] | None:
        """Replace the scan, or apply a change to it, and let approved items pass.

        Unchanged items keep their judgement. A change needs a scan.

        Returns:
            The ids of the items that were changed or removed; None if it may concern any item,
            because the gate could not judge all items before or cannot now.
        """
        was_judged = self.is_judged
        gone: Iterable[str]
        if isinstance(result, ChangeResult):
            change = result.change
            items, gone = change.items, change.gone
            self.scanned = ScanResult(
                source=result.source, scan=change.summary, error="", at=result.at
            )
        elif result.scan is None:
            items, gone = [], list(self.read)
            self.scanned = result
        else:
            items = result.scan.items
            gone = self.read.keys() - {item.id for item in items}
            self.scanned = replace(result, scan=replace(result.scan, items=[]))
        changed = self._replace(items, gone)
        self._judge(gate, changed)
        return {*changed, *gone} if was_judged and self.is_judged else None

    def judge_all(self, gate: Gate | None) -> None:
        """Let approved items pass, after approvals or the source have changed."""
        self.is_judged = False
        self._judge(gate, {})

    def _replace(self, items: Iterable[Item], gone: Iterable[str]) -> dict[str, Item]:
        """Replace and remove some items; return those that differ."""
        changed = {item.id: item for item in items if self.read.get(item.id) is not item}
        self.read |= changed
        for item_id in gone:
            for known in (self.read, self.passed, self.judged):
                known.pop(item_id, None)
        return changed

    def _judge(self, gate: Gate | None, changed: Mapping[str, Item]) -> None:
        """Judge changed items, or all items if some are not judged yet."""
        self.result = self.scanned
        scan = self.scanned.scan
        if scan is None:
            self.is_judged = False
            return
        if gate is None:
            self.passed, self.is_judged = self.read, True
            return
        if not self.is_judged:
            changed, self.passed, self.judged = self.read, {}, {}
        places = {*changed, *(item.path for item in changed.values())}
        own = [one for one in scan.problems if one.item in places or one.path in places]
        part = Scan(items=list(changed.values()), problems=own)
        is_whole = self.scanned.is_whole and not self.scanned.is_known
        try:
            admitted = gate.admit(self.source, part, is_whole=is_whole, offered=self.read.keys())
        except StoreError as error:
            self._refuse(str(error))
            return
        self.is_judged = True
        for item_id in changed:
            self.judged.pop(item_id, None)
            self.passed.pop(item_id, None)
        self.passed |= {item.id: item for item in admitted.items}
        known = set(own)
        for problem in admitted.problems:
            if problem not in known:
                self.judged.setdefault(problem.item, []).append(problem)

    @property
    def admitted(self) -> ScanResult:
        """The result, with the items that passed."""
        if self.result.scan is None:
            return self.result
        scan = replace(self.result.scan, items=[*self.passed.values()])
        return replace(self.result, scan=scan)

    @property
    def judgements(self) -> list[Problem]:
        """The gate's problems with items."""
        if self.result.scan is None:
            return []
        return self._of_source(problem for some in self.judged.values() for problem in some)

    @property
    def problems(self) -> list[Problem]:
        """The problems of the scan."""
        return self._of_source(self.result.scan.problems if self.result.scan else ())

    def _of_source(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems, assigned to the source."""
        return [replace(problem, sources=(self.source.name,)) for problem in problems]

    def _refuse(self, error: str) -> None:
        """Handle unreadable approvals: a trusted source passes, any other counts as unreadable."""
        self.is_judged = False
        if self.source.trust is Trust.TRUSTED:
            self.passed = dict(self.read)
            self.judged = {"": [warning("", error)]}
        else:
            self.passed = {}
            self.result = replace(self.scanned, scan=None, error=error)
