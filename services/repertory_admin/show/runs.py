"""Shows the result of an indexing run."""

from collections.abc import Callable, Collection, Iterable

import typer

from repertory.project.trust_requests import Untrusted, advice
from repertory.sources.source import Problem
from repertory.stats import Run
from repertory.text import counted
from repertory.watch_status import SourceState
from repertory_admin import terminal
from repertory_admin.exits import ExitCode
from repertory_admin.text import short_path

MAX_PROBLEMS = 20
MAX_PATHS = 5  # of one kind; the JSON has all


def errors(problems: Iterable[Problem]) -> list[Problem]:
    """The problems because of which items were left out."""
    return [problem for problem in problems if problem.severity == "error"]


def headline(run: Run) -> str:
    """A summary of a run in one line."""
    stats = run.stats
    items = counted(stats.items, "item")
    sources = counted(len(stats.sources), "source")
    texts = counted(run.embedded, "text")
    model = f"{texts} embedded with {stats.model}" if stats.model else "keywords only, no model"
    return (
        f"{items} of {sources} indexed in {run.seconds:.1f} s: "
        f"{run.added:,} added, {run.changed:,} changed, {run.removed:,} removed, "
        f"{run.unchanged:,} unchanged; {model}."
    )


def show(run: Run, skipped: Untrusted) -> None:
    """Show a run: the sources, the changes and the problems."""
    if run.stats.sources:
        show_sources(run.stats.sources, "Location", lambda one: short_path(one.location))
        terminal.say()
    terminal.show_text(headline(run))
    for notice in run.notices:
        terminal.note(notice)
    if run.stats.problems:
        terminal.say()
        show_problems(run.stats.problems, MAX_PROBLEMS)
    if text := advice(skipped):
        terminal.say()
        terminal.say(text)


def failures(run: Run, names: Collection[str]) -> list[str]:
    """Why the sources with these names could not be read, one sentence for each."""
    return [
        f"{one.name}: {one.error}" for one in run.stats.sources if one.name in names and one.error
    ]


def show_asked(run: Run, names: Collection[str]) -> None:
    """Show how many tools of some servers are indexed, or why they are not.

    Raises:
        typer.Exit: A server could not be read.
    """
    asked = [source for source in run.stats.sources if source.name in names]
    for source in asked:
        found = source.error or f"{counted(source.items, 'tool')} indexed."
        terminal.show_text(f"{source.name}: {found}")
    if any(source.error for source in asked):
        raise typer.Exit(ExitCode.UNREAD)


def show_sources(
    sources: Iterable[SourceState], column: str, cell: Callable[[SourceState], str]
) -> None:
    """Show a table of sources.

    Args:
        sources: The sources.
        column: The title of the fourth column.
        cell: Its text for a source.
    """
    terminal.show_table(
        ("Source", "Type", "Items", column, "State"),
        [
            (source.name, source.type, f"{source.items:,}", cell(source), _state(source))
            for source in sources
        ],
        right=("Items",),
        styles={"State": _state_style, column: lambda _: "dim"},
    )


def _state(source: SourceState) -> str:
    """The state of a source in a few words; the problems say why it is failing."""
    if not source.stale:
        return source.state
    old = f"{counted(source.stale, 'item')} stale"
    return old if source.state == "stale" else f"{source.state}, {old}"


def _state_style(state: str) -> str:
    if state == "fresh":
        return "green"
    return "red" if state.startswith("failing") else "yellow"


def show_problems(
    problems: Iterable[Problem],
    most: int,
    rest: str = "`repertory doctor` lists more",
    beside: int = 0,
) -> None:
    """List problems, errors first and grouped by message, with their files and lines.

    Args:
        problems: The problems.
        most: The maximum number of messages.
        rest: Says what lists the others.
        beside: The number of further problems that are not passed. If there are any, the counts by
            severity are omitted, since the caller has shown them.
    """
    problems = sorted(problems, key=lambda problem: problem.severity != "error")
    bad = len(errors(problems))
    withheld = sum(problem.is_withheld for problem in problems)
    warnings = len(problems) - bad - withheld
    counts = {
        f"{counted(bad, 'error')} (left out; what was indexed before stays)": bad,
        f"{counted(warnings, 'warning')} (indexed nevertheless)": warnings,
        f"{counted(withheld, 'item')} in quarantine (waiting for a review)": withheld,
    }
    heading = ", ".join(text for text, count in counts.items() if count)
    terminal.show_text("The first problems:" if beside else f"{heading}:")
    same: dict[tuple[str, str], list[str]] = {}
    for one in problems:
        path = short_path(one.path)
        same.setdefault((one.severity, one.message), []).append(
            f"{path}:{one.line}" if one.line else path
        )
    for (severity, message), places in [*same.items()][:most]:
        text = ": ".join(filter(None, (severity, first(places), message)))
        terminal.show_text(text, indent=2)
    if (left := sum(map(len, [*same.values()][most:])) + beside) > 0:
        terminal.say(f"  … and {left:,} more: {rest}")


def first(places: list[str]) -> str:
    """The first of some places, and how many others there are."""
    others = len(places) - MAX_PATHS
    shown = ", ".join(places[:MAX_PATHS])
    return f"{shown} and {counted(others, 'other')}" if others > 0 else shown
