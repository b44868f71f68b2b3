"""The first stage: scan the sources, and merge what they offer."""

import contextlib
import shlex
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from repertory.catalogue.item import Item
from repertory.catalogue.policy import Rule
from repertory.errors import SignInError, SourceError, StoreError
from repertory.indexing.between import problems_between
from repertory.review.gate import Gate
from repertory.sources.configured import Catalogue
from repertory.sources.policies import apply
from repertory.sources.source import Problem, Scan, Severity, Source, Trust

CONCURRENCY = 16  # sources scanned at a time; most of them wait for a server


class ScanResult(msgspec.Struct, frozen=True, kw_only=True):
    """One source and the result of scanning it: a scan, or the error that prevented it.

    Attributes:
        awaits_sign_in: Whether the source's server asks for a sign-in.
        is_known: Whether it is what the last command knew: the source was not asked.
    """

    source: Source
    scan: Scan | None
    error: str
    at: float
    is_known: bool = False
    awaits_sign_in: bool = False

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
        waits = isinstance(error, SignInError)
        return ScanResult(source=source, scan=None, error=str(error), at=at, awaits_sign_in=waits)


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

    If two sources offer the same id, the earlier source wins, unless only some of those who may see
    the later source may see the earlier one: what is hidden from a caller must not take the place
    of what is not. A policy for an unknown item is a problem, once every source was read.
    """
    audiences = {source.name: source.visible_to for source in catalogue.sources}
    items: dict[str, Item] = {}
    problems: list[Problem] = []
    for one in scanned:
        if one.scan is None:
            continue
        own = (one.source.name,)
        problems += [msgspec.structs.replace(problem, sources=own) for problem in one.scan.problems]
        for item in one.scan.items:
            first = items.setdefault(item.id, item)
            if first is item:
                continue
            if _is_wider(audiences.get(item.source, ()), audiences.get(first.source, ())):
                items[item.id], first, item = item, item, first  # noqa: PLW2901 - they change places
            problems.append(_left_out(item, first))
    applied = apply(catalogue.rules, items, catalogue.may_change())
    problems += [_withheld(rule) for rule in applied.withheld]
    is_whole = len(scanned) == len(catalogue.sources) and all(one.is_whole for one in scanned)
    if is_whole:
        problems += [_about_nothing(rule) for rule in applied.unused]
    names = [source.name for source in catalogue.sources]
    problems += problems_between(items.values(), names, are_all=is_whole)
    return items, problems


def _is_wider(audience: Sequence[str], other: Sequence[str]) -> bool:
    """Whether an audience has everyone of another one, and more; an empty list is everyone."""
    return bool(other) and (not audience or {*audience} > {*other})


def _left_out(item: Item, first: Item) -> Problem:
    return Problem(
        severity=Severity.WARNING,
        message=f"Left out: the source {first.source} offers {item.id} already; rename one of "
        "them.",
        path=item.path,
        item=item.id,
        sources=(item.source, first.source),
    )


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
