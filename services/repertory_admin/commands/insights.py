"""``repertory insights``: reports on searches, and advice for the catalogue."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repertory.errors import UsageError
from repertory.system.paths import expanded
from repertory.text import counted
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.options import ASKING, STORE, Flags, Output, OutputOption
from repertory_admin.show.insights import show
from repertory_admin.target import Target, target_of

if TYPE_CHECKING:
    from repertory.usage.wire import Insights, UnansweredQueries


@command(
    app,
    "insights",
    settings=(*STORE, *ASKING),
    examples=(
        "repertory insights",
        "repertory insights --output json",
        "repertory insights --labelled-set my-set && repertory eval my-set",
    ),
)
def insights(
    flags: Flags,
    labelled_set: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the queries that found nothing as a labelled set for `repertory eval`.",
            show_default=False,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show which searches found nothing and which items are not used, and what to do.

    The configured or running server of this directory answers, else the records here. Servers
    record searches and what callers read or called afterwards; see docs/insights.md.

    With --labelled-set, the right answer to a query is the item that its callers used soon
    afterwards, else the nearest item, which is only a proposal: check it before you measure.
    """
    target = target_of(flags)
    if labelled_set:
        _write(target, expanded(labelled_set), output)
    elif output is Output.JSON:
        terminal.show_json(_insights(target))
    else:
        show(_insights(target))


def _insights(target: Target) -> "Insights":
    """The report on the usage of the catalogue."""
    if target.server:
        return target.server.insights()
    from repertory.insights import insights_of  # noqa: PLC0415 - imports the engine

    with target.open_here() as repertory:
        return insights_of(repertory)


def _unanswered(target: Target) -> "UnansweredQueries":
    """The queries that found nothing."""
    if target.server:
        return target.server.unanswered()
    from repertory.insights import unanswered_of  # noqa: PLC0415 - imports the engine

    with target.open_here() as repertory:
        return unanswered_of(repertory)


def _write(target: Target, folder: Path, output: Output) -> None:
    """Write a labelled set.

    Raises:
        UsageError: There is no query to write, or the folder cannot be written.
    """
    from repertory.usage.labels import write_set  # noqa: PLC0415 - only for this

    found = _unanswered(target)
    if not found.queries:
        if _insights(target).recording != "plain":
            raise UsageError(
                "The queries are not recorded as text; set REPERTORY_INSIGHTS_RECORD=plain for the "
                "server to record new ones as text."
            )
        raise UsageError("All recorded searches found something, so there is no query to write.")
    with target.open() as backend:
        items = backend.items([entry.id for entry in backend.entries()])
    written = write_set(folder, found.queries, items.values())
    left = found.total - len(found.queries)
    if output is Output.JSON:
        terminal.show_json({"folder": str(folder), "written": written, "leftOut": left})
        return
    count = written.used + written.proposed
    terminal.say(f"Wrote {counted(count, 'query', 'queries')} to {folder}.")
    if left:
        terminal.note(f"{left:,} that were asked less often are left out.")
    if written.proposed:
        terminal.note(
            f"Proposed answers: {written.proposed:,}, the nearest items. Check those of the "
            "queries with the tag `proposed` in queries.jsonl: correct or delete their lines in "
            "qrels.jsonl, and remove the tag. A query without a line is not asked."
        )
