"""``repertory history``: what happened to an item."""

from contextlib import suppress
from typing import Annotated

import typer

from repertory.errors import UnknownItemError
from repertory.review.wire import Event
from repertory_admin import completion, terminal
from repertory_admin.app import app, command
from repertory_admin.options import ASKING, STORE, Flags, Output, OutputOption
from repertory_admin.progress import Bars
from repertory_admin.show.reviews import show_history
from repertory_admin.target import Target, target_of


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
        typer.Argument(
            metavar="ITEM",
            help="The item's id, or its unique name if it is indexed.",
            autocompletion=completion.names,
        ),
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show when an item appeared, how it changed, and who approved it.

    The last 50 events of each skill and tool are kept, even after it is removed.
    """
    target = target_of(flags)
    events = _events(target, item) or _events(target, _id_of(target, item))
    if not events:
        raise UnknownItemError(
            f"Nothing is known about an item {item!r}; give the id of a skill or a tool."
        )
    if output is Output.JSON:
        terminal.show_json(events)
    else:
        show_history(events)


def _events(target: Target, item_id: str) -> list[Event]:
    """The events of an item; empty if its id is unknown."""
    if target.server:
        return target.server.history(item_id)
    with target.open_here() as repertory:
        return repertory.parts.reviews.history(item_id)


def _id_of(target: Target, name: str) -> str:
    """The id of the item with a name; the name itself if no item has it."""
    with suppress(UnknownItemError), Bars() as bars, target.open(bars) as backend:
        return backend.item(name).id
    return name
