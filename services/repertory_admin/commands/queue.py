"""``repertory queue``: the pending, running and failed jobs of a server."""

from typing import Annotated

import typer

from repertory.text import counted
from repertory_admin import terminal
from repertory_admin.app import command, group
from repertory_admin.exits import ExitCode
from repertory_admin.options import ASKING, Flags, Output, OutputOption
from repertory_admin.show.jobs import show
from repertory_admin.target import target_of

queue = group("queue")


@command(
    queue,
    "list",
    settings=ASKING,
    examples=("repertory queue list", "repertory queue list --output json"),
)
def list_jobs(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """List the pending, running and failed jobs."""
    jobs = target_of(flags).required_server().jobs()
    if output is Output.JSON:
        terminal.show_json(jobs)
    else:
        show(jobs)


@command(
    queue,
    "retry",
    settings=ASKING,
    examples=("repertory queue retry", "repertory queue retry 5f1d7a84c2e94b0c"),
)
def retry(
    flags: Flags,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Failed jobs to retry; all if omitted."),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Try failed jobs again, with the items as they are now.

    Exit code 1 if a job that you name has not failed.
    """
    count = target_of(flags).required_server().retry(ids or None)
    if output is Output.JSON:
        terminal.show_json({"retried": count})
    else:
        terminal.say(f"{counted(count, 'failed job')} will be tried again.")
    if ids and (others := len(set(ids)) - count):
        named = counted(others, "of these jobs has", "of these jobs have")
        terminal.warn(f"{named} not failed; `repertory queue list` shows the failed ones.")
        raise typer.Exit(ExitCode.NOT_FOUND)
