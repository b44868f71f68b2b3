"""``repertory doctor``."""

from collections import defaultdict
from typing import TYPE_CHECKING

import typer

from repertory.errors import ConfigurationError
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.checks.finding import Finding, State
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, INDEXING, STORE, Flags, Output, OutputOption
from repertory_admin.progress import Bars
from repertory_admin.show.runs import errors, first, show_problems
from repertory_admin.target import Target, here, target
from repertory_admin.text import short_path

if TYPE_CHECKING:
    from repertory_admin.checks.sources import CheckedSources

MAX_PROBLEMS = 100  # shown in the table; the JSON has all

_MARKS = {State.GOOD: "✓", State.UNSURE: "!", State.BAD: "✗"}
_COLOURS = {"✓": "green", "!": "yellow", "✗": "bold red"}


@command(
    app,
    "doctor",
    settings=(*STORE, *INDEXING, *ASKING),
    examples=("repertory doctor", "repertory doctor --output json"),
)
def doctor(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """Check data directory, keys, model, index or server, sign-in, and sources.

    Every source is read once; nothing is indexed. Places that could hold items but were passed
    over are listed with the reason. Exit code 1 if something is wrong.
    """
    # They import numpy and the engine.
    from repertory_admin.checks.data import (  # noqa: PLC0415 - as above
        audit,
        data_directory,
        databases,
        keys,
    )
    from repertory_admin.checks.index import index, redis, server  # noqa: PLC0415 - as above
    from repertory_admin.checks.model import model  # noqa: PLC0415 - as above
    from repertory_admin.checks.sign_in import sign_in  # noqa: PLC0415 - as above
    from repertory_admin.checks.sources import CheckedSources, sources  # noqa: PLC0415 - as above

    settings, directory = here(flags)
    with Bars() as bars:
        # Without a data directory nothing else can be checked.
        findings = list(data_directory(settings.data_dir))
        found = CheckedSources()
        if findings[0].state is State.GOOD:
            findings.append(audit(settings))
            findings += databases(settings.data_dir)
            findings.append(keys(settings, directory))
            with Target(settings, directory, None).open_here(bars) as repertory:
                findings += model(repertory, bars)
                try:
                    client = target(settings, directory).server
                    findings += server(client) if client else index(repertory)
                except ConfigurationError as error:
                    findings.append(Finding(State.BAD, "server", str(error)))
                if settings.values.redis_url:
                    findings += redis(settings.values.redis_url)
                findings += sign_in(settings.values)
                found = sources(repertory, bars.step)
                findings += found.findings
    if output is Output.JSON:
        terminal.show_json(
            {
                "directory": str(directory),
                "checks": findings,
                "sources": found.sources,
                "passedOver": found.passed_over,
                "problems": found.problems,
            }
        )
    else:
        _show(findings, found)
    if errors(found.problems) or any(finding.state is State.BAD for finding in findings):
        raise typer.Exit(ExitCode.NOT_FOUND)


def _show(findings: list[Finding], found: "CheckedSources") -> None:
    terminal.show_table(
        ("", "Check", "Finding"),
        [(_MARKS[finding.state], finding.subject, finding.text) for finding in findings],
        styles={"": lambda mark: _COLOURS[mark]},
    )
    if found.passed_over:
        terminal.say()
        terminal.say("Skipped:")
        by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for one in found.passed_over:
            by_reason[one.reason].append(short_path(one.path))
        for reason, paths in by_reason.items():
            is_each = len(paths) > 1 and reason.startswith("it ")
            said = reason.replace("it ", "each ", 1) if is_each else reason
            terminal.show_text(f"{first(paths)}: {said}", indent=2)
    if found.problems:
        terminal.say()
        show_problems(found.problems, MAX_PROBLEMS, "`--output json` lists all")
