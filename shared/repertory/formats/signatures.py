"""A tool in one line: what it is called by, and its parameters."""

from repertory.catalogue.item import Item
from repertory.formats.tools import object_schema
from repertory.text import one_line

MAX_PARAMETERS_LENGTH = 120  # characters

_MORE = "…"


def signature(tool_id: str, item: Item | None) -> str:
    """The id and the names of the parameters, the required ones first: ``add_note(text, tags?)``.

    ``…`` stands for parameters that are too many, or unknown because the item is unavailable.
    """
    return f"{one_line(tool_id)}({_MORE if item is None else _parameters(item)})"


def _parameters(item: Item) -> str:
    schema = object_schema(item.input_schema or {})
    required = schema.get("required", [])
    optional = [f"{name}?" for name in schema["properties"] if name not in required]
    length, shown = 0, []
    for name in [*required, *optional]:
        length += len(name) + len(", ")
        if length > MAX_PARAMETERS_LENGTH:
            shown.append(_MORE)
            break
        shown.append(name)
    return ", ".join(shown)
