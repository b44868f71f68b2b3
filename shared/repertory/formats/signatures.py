"""A tool in one line: its id and its parameters."""

import re

from repertory.catalogue.item import Item
from repertory.formats.tools import merged
from repertory.text import is_clean, one_line

MAX_PARAMETERS_LENGTH = 120  # characters

_MORE = "…"
_NAME = re.compile(r"\S{1,64}")


def signature(tool_id: str, item: Item | None) -> str:
    """The id and the names of the parameters, the required ones first: ``add_note(text, tags?)``.

    ``…`` stands for parameters that are too many, whose name is not a single word, or that are
    unknown because the item is unavailable.
    """
    return f"{one_line(tool_id)}({_MORE if item is None else _parameters(item)})"


def _parameters(item: Item) -> str:
    parameters, needed = merged(item.input_schema or {})
    required = set(needed)
    ordered = [*needed, *(name for name in parameters if name not in required)]
    length, shown = 0, []
    for name in filter(_is_shown, ordered):
        length += len(name) + len(", ")
        if length > MAX_PARAMETERS_LENGTH:
            break
        shown.append(name if name in required else f"{name}?")
    return ", ".join([*shown, _MORE] if len(shown) < len(ordered) else shown)


def _is_shown(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and is_clean(name)
