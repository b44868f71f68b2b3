"""The passages of an item: the pieces of its text that rules check one at a time."""

import re
from collections.abc import Iterator

from repertory.catalogue import fences
from repertory.catalogue.item import Item
from repertory.catalogue.policy import set_fields

MAX_PASSAGE = 2_000  # characters; longer ones are split into overlapping pieces
OVERLAP = 300
MAX_DEPTH = 40  # of a schema

# The start of a new passage: a list item, a heading, a quote, a row of a table.
_STARTS = re.compile(r"\s{0,20}(?:[-+•#>|]|\d{1,3}[.)]\s)")


def item_passages(item: Item) -> Iterator[str]:
    """Every passage of an item, without emphasis marks and with single spaces."""
    for text in (item.id, item.name, item.description, item.body, *item.tags):
        yield from passages(text)
    for value in (item.input_schema, item.output_schema, item.extra, set_fields(item.policy)):
        for text in texts(value):
            yield from passages(text)


def passages(text: str) -> Iterator[str]:
    """The passages of a text: paragraphs and list items, each joined to one line; lines of code."""
    gathered: list[str] = []
    fence, was_quoted = "", False
    for line in [*text.splitlines(), ""]:
        is_quoted = not fence and line.lstrip().startswith(">")
        # A quote of several lines is one passage.
        read = line.lstrip(" \t>") if is_quoted and was_quoted else line
        was_quoted = is_quoted
        before, fence = fence, fences.after(fence, read, fences.MAX_INDENT)
        is_blank = fence != before or not read.strip()
        if gathered and (fence or is_blank or _STARTS.match(read)):
            yield from _pieces(" ".join(gathered))
            gathered.clear()
        if not is_blank:
            gathered.append(read)


def _pieces(text: str) -> Iterator[str]:
    # Emphasis and code marks would separate the words that rules look for.
    text = " ".join(text.replace("*", "").replace("`", "").split())
    for start in range(0, max(len(text) - OVERLAP, 1), MAX_PASSAGE - OVERLAP):
        yield text[start : start + MAX_PASSAGE]


def texts(value: object, depth: int = MAX_DEPTH) -> Iterator[str]:
    """Every string inside a JSON value, including keys, in order."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from texts(inner, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts(inner, depth - 1)
