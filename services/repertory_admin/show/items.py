"""Shows items: a list of them, or one in full."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from repertory.catalogue.item import Item
from repertory.catalogue.policy import set_fields
from repertory.formats.linked import link_facts
from repertory.search.links import Links
from repertory_admin import terminal

if TYPE_CHECKING:
    from repertory.index.keywords.document import Entry

_MARKDOWN = (".md", ".mdx", ".markdown")


def show_list(entries: "Sequence[Entry]") -> None:
    """Show a table of items; a terminal gets the beginnings of their descriptions."""
    terminal.show_table(
        ("Item", "Kind", "Source", "Description"),
        [(entry.id, entry.kind, entry.source, entry.description) for entry in entries],
        short=("Description",),
        styles={"Item": lambda _: "bold cyan", "Kind": lambda _: "dim", "Source": lambda _: "dim"},
    )


def show(item: Item, links: Links) -> None:
    """Show an item with all its fields, its links, its text and its schemas."""
    facts = {
        "id": item.id,
        "name": item.name,
        "kind": item.kind,
        "source": item.source,
        "server": item.server,
        "path": item.path,
        "tags": ", ".join(item.tags),
        **link_facts(links),
        **{key: _text(value) for key, value in (item.extra | set_fields(item.policy)).items()},
    }
    terminal.show_facts(facts)
    if item.description:
        terminal.say()
        terminal.show_text(item.description)
    if item.body:
        terminal.say()
        (terminal.show_markdown if item.path.endswith(_MARKDOWN) else terminal.say)(item.body)
    for title, schema in (("Input", item.input_schema), ("Output", item.output_schema)):
        if schema is not None:
            terminal.say(f"\n{title}:")
            terminal.show_json(schema)


def _text(value: Any) -> str:  # noqa: ANN401 - any value of an author
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
