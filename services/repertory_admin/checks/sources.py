"""The check that reads every source, and lists what was passed over."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.errors import ConfigurationError
from repertory.indexing.latest_scans import LatestScans
from repertory.indexing.run import SCANNING
from repertory.indexing.scan import ScanResult, scan_all
from repertory.local.one_shot import Repertory
from repertory.project.workspace import Workspace
from repertory.review.gate import Gate
from repertory.sources.configured import Catalogue
from repertory.sources.discover import discover
from repertory.sources.entry import source_path
from repertory.sources.folder import HIDDEN
from repertory.sources.registry import files_to_trust
from repertory.sources.source import PassedOver, Problem, Scan
from repertory.system.paths import lies_in, real_path
from repertory.system.progress import Progress
from repertory.text import counted
from repertory_admin.checks.finding import Finding, State
from repertory_admin.text import short_path

CLAUDE_FOLDERS = ("/.claude/skills/", "/.claude/commands/")
MAX_LISTED = 8_000  # characters of all descriptions: 1 % of a context of 200,000 tokens
MAX_LISTED_EACH = 1_536  # characters of one description


class CheckedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source: its item ids, or why it cannot be read, and the groups that see it."""

    name: str
    type: str
    location: str
    items: list[str]
    error: str
    visible_to: tuple[str, ...] = msgspec.field(name="visibleTo")


class CheckedSources(msgspec.Struct, frozen=True, kw_only=True):
    """The result of reading every source.

    Attributes:
        findings: Whether each source can be read.
        problems: The problems of the configuration, the files and the items.
        sources: The sources with their items, in the catalogue's order.
        passed_over: Unread places that could hold items: first those that discovery skipped, or
            that the configuration does not list, then those that each source skipped.
    """

    findings: list[Finding] = []
    problems: list[Problem] = []
    sources: list[CheckedSource] = []
    passed_over: list[PassedOver] = []


def sources(repertory: Repertory, step: Progress) -> CheckedSources:
    """Read every source once."""
    workspace = repertory.workspace
    try:
        catalogue = workspace.catalogue()
    except ConfigurationError as error:
        return CheckedSources(findings=[Finding(State.BAD, "configuration", str(error))])
    built = catalogue.sources
    findings = [Finding(State.UNSURE, "configuration", notice) for notice in workspace.notices]
    done = itertools.count(1)
    scans = LatestScans({}, Gate(repertory.parts.reviews, records=False))
    scans.adopt(catalogue)
    for result in scan_all(built, lambda: step(SCANNING, next(done), len(built))):
        scans.add(result)
    scanned = scans.admitted
    findings += [finding for one in scanned for finding in _findings(one)]
    findings += listing(item for one in scanned if one.scan for item in one.scan.items)
    if not built:
        findings.append(Finding(State.UNSURE, "sources", "no sources were found"))
    failures = {one.error for one in scanned if one.error}  # their findings say so
    configured = {*catalogue.problems}
    return CheckedSources(
        findings=findings,
        problems=[
            one for one in scans.problems if one in configured or one.message not in failures
        ],
        sources=[
            CheckedSource(
                name=one.source.name,
                type=one.source.type,
                location=one.source.location,
                items=[item.id for item in one.scan.items] if one.scan else [],
                error=one.error,
                visible_to=one.source.visible_to,
            )
            for one in scanned
        ],
        passed_over=_passed_over(
            catalogue,
            [*catalogue.passed_over, *_unlisted(workspace)],
            [one.scan for one in scanned if one.scan],
        ),
    )


def _findings(one: ScanResult) -> Iterator[Finding]:
    """Whether a source can be read."""
    subject = f"source {one.source.name}"
    if one.scan is None:
        is_skipped = not one.source.is_trusted and not one.source.fault
        awaits_user = one.awaits_sign_in or one.awaits_input
        state = State.UNSURE if is_skipped or awaits_user else State.BAD
        yield Finding(state, subject, one.error)
        return
    text = f"{counted(len(one.scan.items), 'item')} in {short_path(one.source.location)}"
    if groups := ", ".join(one.source.visible_to):
        text += f", visible to {groups}"
    yield Finding(State.GOOD, subject, text)
    if one.scan.stale:
        yield Finding(State.BAD, subject, one.scan.stale)


def listing(items: Iterable[Item]) -> Iterator[Finding]:
    """Whether Claude Code shows its model all descriptions of its skills."""
    sizes = [
        min(len(item.description), MAX_LISTED_EACH)
        for item in items
        if item.kind is Kind.SKILL and any(folder in item.path for folder in CLAUDE_FOLDERS)
    ]
    if sum(sizes) > MAX_LISTED:
        text = (
            f"the descriptions of {len(sizes):,} skills have {sum(sizes):,} characters; Claude "
            f"Code shows its model about {MAX_LISTED:,} in a context of 200,000 tokens, and no "
            "description of the least used skills; `repertory connect claude-code` lets it search "
            "all of them"
        )
        yield Finding(State.UNSURE, "skills of Claude Code", text)


def _unlisted(workspace: Workspace) -> Iterator[PassedOver]:
    """What discovery would read besides the whole project, but the configuration does not list."""
    settings, directory = workspace.settings, workspace.directory
    if not settings.sources or workspace.paths():
        return
    configured = workspace.sources.discovery()
    listed = [
        (entry.get("type"), path)
        for entry in (*configured.entries, *(entry for entry, _ in configured.withheld))
        for path in _paths(entry, settings.base)
    ]
    for entry in discover(directory, Path.home(), settings.variables).entries:
        for path in _paths(entry, directory):
            is_listed = any(
                entry["type"] == kind and lies_in(path, other) for kind, other in listed
            )
            if not is_listed and real_path(path) != real_path(directory):
                reason = "it is not among the sources that the configuration lists"
                yield PassedOver(str(path), reason)


def _paths(entry: Mapping[str, Any], base: Path) -> list[Path]:
    """The files and folders that an entry names."""
    files = files_to_trust(entry, base)
    if files is not None:
        return files
    return [source_path(entry, base)] if "path" in entry else []


def _passed_over(
    catalogue: Catalogue, left_out: list[PassedOver], scans: list[Scan]
) -> list[PassedOver]:
    """The places that were passed over; for a partly read hidden folder, its unread subfolders."""
    used = {source.folder.path for source in catalogue.sources if source.folder}
    above = {parent for path in used for parent in path.parents}
    owned = used | above
    read = set(owned)
    for scan in scans:
        for item in scan.items:
            if "/." in item.path:
                read.update(Path(item.path).parents)
    found: dict[str, PassedOver] = {}
    for one in (*left_out, *(one for scan in scans for one in scan.passed_over)):
        path = Path(one.path)
        if one.reason == HIDDEN and path in read:
            unread = list(_beside(path, above, read))
        else:
            unread = [] if path in owned else [path]
        for other in unread:
            found.setdefault(str(other), PassedOver(str(other), one.reason))
    return [one for one in found.values() if not _is_within_another(one, found)]


def _beside(folder: Path, above: set[Path], read: set[Path]) -> Iterator[Path]:
    """The unread folders in a folder, and in those of its subfolders that contain sources."""
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:  # the scan reports it
        return
    for path in inner:
        if path in above:
            yield from _beside(path, above, read)
        elif path not in read:
            yield path


def _is_within_another(one: PassedOver, found: dict[str, PassedOver]) -> bool:
    """Whether a parent folder was passed over for the same reason."""
    outer = (found.get(str(parent)) for parent in Path(one.path).parents)
    return any(other is not None and other.reason == one.reason for other in outer)
