"""What a run of the indexer did, shown, and the exit code that follows."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from repertory_admin import terminal
from repertory_admin.exits import ExitCode
from repertory_admin.mcp_trust import Untrusted, advice

if TYPE_CHECKING:
    from repertory.indexing.report import Report, SourceReport
    from repertory.sources.source import Problem

MOST_PROBLEMS = 20
NOT_TRUSTED = "not trusted yet"


def exit_code(report: "Report", skipped: Untrusted) -> ExitCode:
    """Whether everything could be read; a server that is merely not trusted does not count."""
    failed = any(source.error and not _is_skipped(source, skipped) for source in report.sources)
    return ExitCode.UNREAD if failed or errors(report.problems) else ExitCode.DONE


def errors(problems: "Iterable[Problem]") -> "list[Problem]":
    """The problems that left an item out."""
    return [problem for problem in problems if problem.severity == "error"]


def headline(report: "Report") -> str:
    """A run in one line."""
    items = terminal.count(report.items, "item")
    sources = terminal.count(len(report.sources), "source")
    texts = terminal.count(report.embedded, "text")
    model = f"{texts} embedded with {report.model}" if report.model else "words alone, no model"
    return (
        f"{items} of {sources} indexed in {report.seconds:.1f} s: "
        f"{report.added:,} added, {report.changed:,} changed, {report.removed:,} removed, "
        f"{report.unchanged:,} unchanged; {model}."
    )


def show(report: "Report", skipped: Untrusted) -> None:
    """Show a run: what was found where, what was done, and what was wrong."""
    if report.sources:
        show_sources(report.sources, skipped)
        terminal.say()
    terminal.tell(headline(report))
    for notice in report.notices:
        terminal.tell(notice)
    if report.problems:
        terminal.say()
        show_problems(report.problems, MOST_PROBLEMS)
    if text := advice(skipped):
        terminal.say()
        terminal.say(text)


def show_sources(sources: "Iterable[SourceReport]", skipped: Untrusted) -> None:
    """A table of the sources of a run."""
    terminal.show_table(
        ("Source", "Type", "Items", "Stale", "Location", "Error"),
        [
            (
                source.name,
                source.type,
                f"{source.items:,}",
                f"{source.stale:,}" if source.stale else "",
                terminal.short_path(source.location),
                NOT_TRUSTED if _is_skipped(source, skipped) else source.error,
            )
            for source in sources
        ],
        right=("Items", "Stale"),
        styles={
            "Error": lambda text: "dim" if text == NOT_TRUSTED else "red",
            "Location": lambda _: "dim",
            "Stale": lambda _: "yellow",
        },
    )


def show_problems(problems: "Iterable[Problem]", most: int | None = None) -> None:
    """List problems, errors first, each with its file and line."""
    problems = sorted(problems, key=lambda problem: problem.severity != "error")
    bad = len(errors(problems))
    terminal.say(
        f"{terminal.count(bad, 'error')} (left out), "
        f"{terminal.count(len(problems) - bad, 'warning')} (indexed all the same):"
    )
    for problem in problems[:most]:
        text = str(msgspec.structs.replace(problem, path=terminal.short_path(problem.path)))
        terminal.tell(f"{problem.severity}: {text}", indent=2)
    if most is not None and len(problems) > most:
        terminal.say(f"  … and {len(problems) - most:,} more: `repertory doctor` lists all")


def _is_skipped(source: "SourceReport", skipped: Untrusted) -> bool:
    return source.type == "mcp" and source.name in skipped.servers
