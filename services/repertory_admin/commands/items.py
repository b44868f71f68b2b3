"""``repertory items``: lists the indexed items, or shows one."""

from typing import Annotated

import typer

from repertory.notices import about_text
from repertory.search.query import filter_of
from repertory.text import counted
from repertory.wire import linked, summary
from repertory_admin import completion, terminal
from repertory_admin.app import command, group
from repertory_admin.commands.search import KindOption, ServerOption, SourceOption, TagOption
from repertory_admin.options import ASKING, STORE, Flags, Output, OutputOption
from repertory_admin.progress import Bars
from repertory_admin.show import items as items_shown
from repertory_admin.target import target_of

items = group("items")


@command(
    items,
    "list",
    settings=(*STORE, *ASKING),
    examples=("repertory items list --kind tool", "repertory items list --tag git --output json"),
)
def list_items(
    flags: Flags,
    kind: KindOption = None,
    source: SourceOption = None,
    server: ServerOption = None,
    tag: TagOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the indexed items by id."""
    where = filter_of(kinds=kind or (), sources=source or (), servers=server or (), tags=tag or ())
    with Bars() as bars, target_of(flags).open(bars) as backend:
        entries = sorted(backend.entries(where), key=lambda entry: entry.id)
    if output is Output.JSON:
        terminal.show_json([summary(entry) for entry in entries])
        return
    items_shown.show_list(entries)
    if terminal.is_terminal():
        terminal.note(counted(len(entries), "item"))


@command(
    items,
    "show",
    settings=(*STORE, *ASKING),
    examples=("repertory items show git__commit", "repertory items show commit --output json"),
)
def show(
    flags: Flags,
    item: Annotated[
        str,
        typer.Argument(
            metavar="ITEM",
            help="The item's id or its unique name.",
            autocompletion=completion.names,
        ),
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one item with all its fields, its links, its text and its schemas.

    A skill needs the tools that it mentions; a tool is needed by the skills that mention it.

    A terminal gets the text as formatted Markdown, a pipe as it was written.
    """
    target = target_of(flags)
    with target.naming_quarantined(item), Bars() as bars, target.open(bars) as backend:
        found = backend.item(item)
        links = backend.links(found.id)
        notice = about_text(found, backend.stats().problems)
    if output is Output.JSON:
        terminal.show_json(linked(found, links))
    else:
        items_shown.show(found, links)
        if notice:
            terminal.note(notice)
