"""``repertory doctor``."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from repertory.errors import ConfigurationError
from repertory.settings import load
from repertory.sources.source import Problem
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.backend import Target, target
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, INDEXING, STORE, Flags, Output, OutputOption
from repertory_admin.progress import Bars
from repertory_admin.show.runs import errors, show_problems

if TYPE_CHECKING:
    from repertory_admin.checks import Finding

_MARKS = {"good": "✓", "unsure": "!", "bad": "✗"}
_COLOURS = {"✓": "green", "!": "yellow", "✗": "bold red"}


@command(
    app,
    "doctor",
    settings=(*STORE, *INDEXING, *ASKING),
    examples=("repertory doctor", "repertory doctor --output json"),
)
def doctor(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """Check data directory, model, index or server, and sources.

    Every source is read once; nothing is indexed. Exit code 1 if something is wrong.
    """
    from repertory_admin import checks  # noqa: PLC0415 - imports numpy and the engine

    directory = Path.cwd()
    settings = load(flags, directory)
    with Bars() as bars:
        # Without a data directory nothing else can be checked.
        findings = list(checks.data_directory(settings.data_dir))
        problems: list[Problem] = []
        if findings[0].state is checks.State.GOOD:
            with Target(settings, directory, None).open_here(bars) as repertory:
                findings += checks.model(repertory, bars)
                try:
                    client = target(settings, directory).server
                    findings += checks.server(client) if client else checks.index(repertory)
                except ConfigurationError as error:
                    findings.append(checks.Finding(checks.State.BAD, "server", str(error)))
                read, problems = checks.sources(repertory, bars.step)
                findings += read
    if output is Output.JSON:
        terminal.show_json({"checks": findings, "problems": problems})
    else:
        _show(findings, problems)
    if errors(problems) or any(finding.state is checks.State.BAD for finding in findings):
        raise typer.Exit(ExitCode.NOT_FOUND)


def _show(findings: "list[Finding]", problems: list[Problem]) -> None:
    terminal.show_table(
        ("", "Check", "Finding"),
        [(_MARKS[finding.state], finding.subject, finding.text) for finding in findings],
        styles={"": lambda mark: _COLOURS[mark]},
    )
    if problems:
        terminal.say()
        show_problems(problems)
