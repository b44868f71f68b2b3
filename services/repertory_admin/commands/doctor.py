"""``repertory doctor``."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from repertory.errors import ConfigurationError
from repertory.settings import load
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, INDEXING, STORE, Flags, Output, OutputOption

if TYPE_CHECKING:
    from repertory.sources.source import Problem
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

    Every source is read once, nothing is indexed. Exit code 1 if something is wrong.
    """
    from repertory import running  # noqa: PLC0415 - --help must be instant
    from repertory.one_shot import Repertory  # noqa: PLC0415 - likewise
    from repertory_admin import checks  # noqa: PLC0415 - likewise
    from repertory_admin.progress import Bars  # noqa: PLC0415 - likewise
    from repertory_admin.reports import errors  # noqa: PLC0415 - likewise

    directory = Path.cwd()
    settings = load(flags, directory)
    with Bars() as bars:
        # Without a data directory nothing else can be looked at.
        findings = list(checks.data_directory(settings.data_dir))
        problems: list[Problem] = []
        if findings[0].state is checks.State.GOOD:
            with Repertory(settings, directory, download=bars.download) as repertory:
                findings += checks.model(repertory, bars)
                try:
                    client = running.client(settings, directory)
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


def _show(findings: "list[Finding]", problems: "list[Problem]") -> None:
    from repertory_admin.reports import show_problems  # noqa: PLC0415 - --help must be instant

    terminal.show_table(
        ("", "Check", "Finding"),
        [(_MARKS[finding.state], finding.subject, finding.text) for finding in findings],
        styles={"": lambda mark: _COLOURS[mark]},
    )
    if problems:
        terminal.say()
        show_problems(problems)
