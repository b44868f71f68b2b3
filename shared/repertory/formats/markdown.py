"""An answer as Markdown, for a model or a person to read."""

from collections.abc import Iterable

from repertory.formats import words
from repertory.search.answer import Answer
from repertory.text import one_line

_COLUMNS = ("Id", "Kind", "Confidence", "Reason", "Description", "Section")
# What could start code, a link, a cell, an escape or HTML.
_ESCAPES = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`|[]"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
)


def markdown(answer: Answer) -> str:
    """A heading, the query, and a table of the hits, best first."""
    lines = ["# Search results", "", f"Query: {escaped(answer.query)}", ""]
    if answer.degraded:
        lines += [escaped(words.degraded(answer)), ""]
    if not answer.hits:
        return "\n".join([*lines, words.nothing(answer), ""])
    lines += [row(_COLUMNS), row(["---"] * len(_COLUMNS))]
    for hit in answer.hits:
        cells = (
            code(hit.id),
            hit.kind,
            f"{hit.confidence:.2f}",
            escaped(hit.reason),
            escaped(hit.description),
            escaped(hit.matched_in.lstrip("# ")),
        )
        lines.append(row(cells))
    return "\n".join([*lines, ""])


def row(cells: Iterable[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """A text on one line that stays the text of its cell."""
    return words.line(text).translate(_ESCAPES)


def code(text: str) -> str:
    """An id as code, which nobody reads as anything else; escaped where it cannot be."""
    text = one_line(text)
    safe = text.translate(_ESCAPES)
    return f"`{text}`" if text and safe == text else safe
