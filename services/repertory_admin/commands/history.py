"""``repertory history``: what happened to an item."""

from typing import Annotated

import typer

from repertory.errors import UnknownItemError
from repertory_admin import completion, terminal
from repertory_admin.app import app, command
from repertory_admin.backend import target_of
from repertory_admin.options import ASKING, STORE, Flags, Output, OutputOption
from repertory_admin.show.reviews import show_history


@command(
    app,
    "history",
    settings=(*STORE, *ASKING),
    examples=("repertory history notes__add_note",),
)
def history(
    flags: Flags,
    item: Annotated[
        str,
        typer.Argument(metavar="ITEM", help="The item's id.", autocompletion=completion.ids),
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show when an item appeared, how it changed, and who approved it.

    The last 50 events of a skill or a tool are kept, also of one that is gone.
    """
    target = target_of(flags)
    if target.server:
        events = target.server.history(item)
    else:
        with target.open_here() as repertory:
            events = repertory.parts.reviews.history(item)
    if not events:
        raise UnknownItemError(
            f"Nothing is known about an item {item!r}; give the id of a skill or a tool."
        )
    if output is Output.JSON:
        terminal.show_json(events)
    else:
        show_history(events)
