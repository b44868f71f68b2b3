"""``repertory trust``: review and approve changes of the catalogue."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repertory.audit import user
from repertory.errors import StoreError, UsageError
from repertory.project.workspace import Workspace
from repertory.review.versions import is_bound
from repertory.system.files import read_json, write_json
from repertory.text import counted, normalized
from repertory_admin import terminal
from repertory_admin.app import command, group
from repertory_admin.auditing import audited
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, INDEXING, STORE, Flags, Output, OutputOption
from repertory_admin.progress import Bars
from repertory_admin.show import runs
from repertory_admin.show.reviews import show_review
from repertory_admin.target import Target, index, target_of

if TYPE_CHECKING:
    from repertory.review.wire import Review

trust = group("trust")


@command(
    trust,
    "review",
    settings=(*STORE, *ASKING),
    examples=("repertory trust review", "repertory trust review --output json"),
)
def review(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """List items that are quarantined, new or changed, with the change and what is suspicious.

    Agents do not see quarantined items. At most 500 items are listed.
    """
    target = target_of(flags)
    found = target.reviews()
    with suppress(StoreError):  # without the file, an id approves any version
        write_json(_file(target), [one.as_shown for one in found.reviews])
    if output is Output.JSON:
        terminal.show_json(found.reviews)
    else:
        _show(found.reviews)
    if found.left_out:
        terminal.warn(f"{found.left_out}; the next ones follow when these are approved.")


def _show(waiting: "Sequence[Review]") -> None:
    for one in waiting:
        show_review(one)
    if waiting:
        terminal.note("`repertory trust approve ID…` approves items; --all approves all of them.")
    else:
        terminal.say("Nothing waits for approval.")


@command(
    trust,
    "approve",
    settings=(*STORE, *INDEXING, *ASKING),
    examples=(
        "repertory trust approve notes__add_note",
        "repertory trust approve notes__add_note@5f1d7a84c2e9",
        "repertory trust approve --all",
    ),
)
def approve(
    flags: Flags,
    items: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Items, or ID@VERSION to approve this version."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Approve all items that review lists.")
    ] = False,
) -> None:
    """Approve items as review has shown them, and index those that were in quarantine.

    Changes since then are not approved. An item that review has not shown is approved as it is now,
    and so are all items if review was never run.

    Exit code 1 if an item that you name does not wait for approval, 3 if one cannot be indexed.
    """
    if bool(items) == everything:
        raise UsageError("Name the items to approve, or give --all.")
    target = target_of(flags)
    shown = read_json(_file(target), list[str])
    wanted = as_shown(items, shown or []) if items else shown
    failures: list[str] = []
    if target.server:  # which records it
        done = target.server.approve(_bound(wanted, target.server.reviews().reviews))
    else:
        with audited(target.settings, target.directory, "approve", items or ["--all"]):
            done, failures = _approve_here(target, wanted)
    if done or everything:
        terminal.say(f"Approved {counted(len(done), 'item')}.")
    for failure in failures:
        terminal.warn(failure)
    approved = {_composed(one) for one in done}
    left = [one for one in dict.fromkeys(items or ()) if approved.isdisjoint(_names(one))]
    if left or (not done and shown is not None):
        names = f"with the id {', '.join(left)} waits" if left else "waits"
        as_it_was = " as it was shown" if wanted != items else ""
        terminal.warn(f"Nothing {names} for approval{as_it_was}: see `repertory trust review`.")
    if left:
        raise typer.Exit(ExitCode.NOT_FOUND)
    if failures:
        raise typer.Exit(ExitCode.UNREAD)


def _file(target: Target) -> Path:
    """The file with the versions that were shown, as ``ID@VERSION``."""
    return Workspace(target.settings, target.directory).shown_file


def as_shown(items: list[str], shown: list[str]) -> list[str]:
    """Items as ``ID@VERSION``, with the versions that were shown; unchanged if none was shown.

    Names are compared in NFC, since some keyboards and file systems decompose accented letters.
    """
    known = defaultdict[str, list[str]](list)
    for one in shown:
        for name in _names(one):
            known[name].append(one)
    return [version for one in items for version in known.get(_composed(one), [one])]


def _bound(items: list[str] | None, listed: "Sequence[Review]") -> list[str]:
    """Items as ``ID@VERSION``, by default with the version that is listed now; None means all.

    Items without a version that are not listed are left out, since they do not wait for approval.
    """
    versions = [one.as_shown for one in listed]
    wanted = versions if items is None else as_shown(items, versions)
    return [one for one in wanted if is_bound(one)]


def _names(item: str) -> tuple[str, str]:
    """An item given as ``ID@VERSION``, and its id; the id is empty without a version."""
    composed = _composed(item)
    return composed, composed.rpartition("@")[0]


def _composed(name: str) -> str:
    return normalized("NFC", name)


def _approve_here(target: Target, items: list[str] | None) -> tuple[list[str], list[str]]:
    """Approve in this process, and index; servers with newly approved tools are asked again.

    Returns:
        The approved items, and the errors from reading their sources.
    """
    with Bars() as bars, target.open_here(bars) as repertory:
        reviews = repertory.parts.reviews
        hidden = reviews.quarantined()
        done = reviews.approve(items, user())
        approved = set(done)
        sources = {source for source, item in hidden if item in approved}
        failures = runs.failures(index(repertory, bars, sources), sources) if done else []
    return done, failures
