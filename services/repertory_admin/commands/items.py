"""``repertory items``: lists the indexed items, or shows one."""

from typing import Annotated, Any

import msgspec
import typer

from repertory.catalogue.item import Item
from repertory.catalogue.policy import set_fields
from repertory.search.query import filter_of
from repertory.text import cut
from repertory.wire import summary
from repertory_admin import terminal
from repertory_admin.app import command, group
from repertory_admin.backend import target_of
from repertory_admin.commands.search import KindOption, ServerOption, SourceOption, TagOption
from repertory_admin.options import ASKING, STORE, Flags, Output, OutputOption

SHOWN_DESCRIPTION = 120  # characters on a terminal; a pipe gets all

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
    with target_of(flags).open() as backend:
        entries = sorted(backend.entries(where), key=lambda entry: entry.id)
    if output is Output.JSON:
        terminal.show_json([summary(entry) for entry in entries])
        return
    longest = SHOWN_DESCRIPTION if terminal.is_terminal() else None
    terminal.show_table(
        ("Item", "Kind", "Source", "Description"),
        [
            (
                entry.id,
                entry.kind,
                entry.source,
                cut(entry.description, longest) if longest else entry.description,
            )
            for entry in entries
        ],
        styles={"Item": lambda _: "bold cyan", "Kind": lambda _: "dim", "Source": lambda _: "dim"},
    )
    if terminal.is_terminal():
        terminal.note(terminal.count(len(entries), "item"))


@command(
    items,
    "show",
    settings=(*STORE, *ASKING),
    examples=("repertory items show git__commit", "repertory items show git__commit --output json"),
)
def show(
    flags: Flags,
    item_id: Annotated[str, typer.Argument(metavar="ID", help="The item's id.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one item with all its fields, its text and its schemas."""
    with target_of(flags).open() as backend:
        item = backend.item(item_id)
    if output is Output.JSON:
        terminal.show_json(item)
    else:
        _show(item)


def _show(item: Item) -> None:
    facts = {
        "id": item.id,
        "name": item.name,
        "kind": item.kind,
        "source": item.source,
        "server": item.server,
        "path": item.path,
        "tags": ", ".join(item.tags),
        **{key: _text(value) for key, value in (item.extra | set_fields(item.policy)).items()},
    }
    terminal.show_facts({name: value for name, value in facts.items() if value})
    for text in (item.description, item.body):
        if text:
            terminal.say(f"\n{text.strip()}")
    for title, schema in (("Input", item.input_schema), ("Output", item.output_schema)):
        if schema is not None:
            terminal.say(f"\n{title}:")
            terminal.say(msgspec.json.format(msgspec.json.encode(schema), indent=2).decode())


def _text(value: Any) -> str:  # noqa: ANN401 - any value of an author
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
