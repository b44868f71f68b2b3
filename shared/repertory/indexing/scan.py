"""The first stage: scan the sources, and merge what they offer."""

import contextlib
import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from repertory.catalogue.item import Item
from repertory.catalogue.likeness import likenesses
from repertory.catalogue.names import compact_name
from repertory.catalogue.policy import Rule
from repertory.errors import SourceError, StoreError
from repertory.review.gate import Gate
from repertory.sources.configured import Catalogue
from repertory.sources.policies import apply
from repertory.sources.source import Problem, Scan, Severity, Source, Trust

CONCURRENCY = 16  # sources scanned at a time; most of them wait for a server


class ScanResult(msgspec.Struct, frozen=True, kw_only=True):
    """One source and the result of scanning it: a scan, or the error that prevented it.

    Attributes:
        is_known: Whether it is what the last command knew: the source was not asked.
    """

    source: Source
    scan: Scan | None
    error: str
    at: float
    is_known: bool = False

    @property
    def is_partial(self) -> bool:
        """Whether anything in the source was unreadable."""
        return self.scan is None or bool(self.scan.unread or self.scan.unread_under)

    @property
    def is_whole(self) -> bool:
        """Whether every item of the source was read."""
        return not (self.scan is None or self.is_partial or self.scan.unchanged)

    def keeps(self, item_id: str) -> bool:
        """Whether an item that the scan did not return may still exist."""
        return self.scan is None or self.scan.keeps(item_id)


def scan_source(source: Source, *, refresh: bool = False) -> ScanResult:
    """Scan one source; a failure is a result, too.

    Args:
        source: The source.
        refresh: Whether to fetch first what lies elsewhere, which may take minutes.
    """
    if refresh:
        with contextlib.suppress(SourceError):  # the scan names it
            source.refresh()
    at = time.time()
    try:
        scan = source.scan()
        return ScanResult(source=source, scan=scan, error=scan.stale, at=at)
    except SourceError as error:
        return ScanResult(source=source, scan=None, error=str(error), at=at)


def scan_all(sources: Sequence[Source], done: Callable[[], None]) -> list[ScanResult]:
    """Scan all sources concurrently; a failing one does not stop the others.

    Args:
        sources: The sources, in the catalogue's order.
        done: Called after each.

    Returns:
        The results, in the same order.
    """

    def one(source: Source) -> ScanResult:
        try:
            return scan_source(source)
        finally:
            done()

    if not sources:
        return []
    with ThreadPoolExecutor(min(CONCURRENCY, len(sources))) as pool:
        return list(pool.map(one, sources))


def admitted(result: ScanResult, gate: Gate) -> ScanResult:
    """A scan without the items in quarantine.

    If the approvals are unreadable, so is the source, unless it is trusted.
    """
    if result.scan is None:
        return result
    try:
        is_whole = result.is_whole and not result.is_known
        scan = gate.admit(result.source, result.scan, is_whole=is_whole)
    except StoreError as error:
        if result.source.trust is Trust.TRUSTED:
            return result
        return msgspec.structs.replace(result, scan=None, error=str(error))
    return msgspec.structs.replace(result, scan=scan)


def merge(
    scanned: Sequence[ScanResult], catalogue: Catalogue
) -> tuple[dict[str, Item], list[Problem]]:
    """Merge scans into all items by id, with the catalogue's policies, and all problems.

    If two sources offer the same id, the earlier source wins. A policy for an unknown item is a
    problem, once every source was read.
    """
    items: dict[str, Item] = {}
    problems: list[Problem] = []
    for one in scanned:
        if one.scan is None:
            continue
        problems += one.scan.problems
        for item in one.scan.items:
            first = items.setdefault(item.id, item)
            if first is not item:
                problems.append(
                    Problem(
                        severity=Severity.WARNING,
                        message=f"Left out: the source {first.source} offers {item.id} already; "
                        "rename one of them.",
                        path=item.path,
                        item=item.id,
                    )
                )
    for item_id, message in likenesses(items.values()).items():
        path = items[item_id].path
        problems.append(
            Problem(severity=Severity.WARNING, message=message, path=path, item=item_id)
        )
    applied = apply(catalogue.rules, items, catalogue.may_change())
    problems += [_withheld(rule) for rule in applied.withheld]
    if len(scanned) == len(catalogue.sources) and all(one.is_whole for one in scanned):
        problems += [_about_nothing(rule) for rule in applied.unused]
        problems += _without_successor(items.values())
    return items, problems


def _about_nothing(rule: Rule) -> Problem:
    message = f"{rule.place} is about {rule.item!r}, and no item has that id or name."
    return Problem(severity=Severity.WARNING, message=message)


def _withheld(rule: Rule) -> Problem:
    message = (
        f"{rule.place} is about {rule.item!r}, which is also an item from elsewhere; a file that "
        "was found decides about the items of its own folder alone. Run 'repertory config trust "
        f"{shlex.quote(rule.file)}' to allow more."
    )
    return Problem(severity=Severity.WARNING, message=message)


def _without_successor(items: Collection[Item]) -> Iterator[Problem]:
    """A problem for each deprecated item whose successor does not exist."""
    deprecated = [item for item in items if item.policy and item.policy.deprecated_by]
    named: defaultdict[str, set[str]] = defaultdict(set)
    for item in items if deprecated else ():
        for name in (item.id, item.name):
            named[compact_name(name)].add(item.id)
    for item in deprecated:
        successor = item.policy.deprecated_by if item.policy else ""
        if not named[compact_name(successor)] - {item.id}:
            yield Problem(
                severity=Severity.WARNING,
                message=f"It is deprecated in favour of {successor!r}, and no other item has that "
                "id or name.",
                path=item.path,
                item=item.id,
            )
