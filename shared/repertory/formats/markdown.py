"""An answer as Markdown."""

from collections.abc import Iterable

from repertory.formats import phrases
from repertory.search.answer import Answer
from repertory.text import one_line

_COLUMNS = ("Id", "Kind", "Confidence", "Reason", "Description", "Section")
# Characters that could start code, a link, a cell, an escape or HTML.
_ESCAPES = str.maketrans(
    {mark: f"\\{mark}" for mark in "\\`|[]"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
)


def markdown(answer: Answer) -> str:
    """Write a heading, the query, and a table of the hits, best first."""
    lines = ["# Search results", "", f"Query: {escaped(answer.query)}", "", *remarks(answer)]
    if not answer.hits:
        return "\n".join(lines)
    lines += [row(_COLUMNS), row(["---"] * len(_COLUMNS))]
    for hit in answer.hits:
        cells = (
            code(hit.id),
            hit.kind,
            f"{hit.confidence:.2f}",
            escaped(phrases.reason(hit)),
            escaped(hit.description),
            escaped(hit.matched_in.lstrip("# ")),
        )
        lines.append(row(cells))
    return "\n".join([*lines, ""])


def remarks(answer: Answer) -> list[str]:
    """Paragraphs about the whole answer: what is unavailable, its notices, or that it is empty."""
    texts = [phrases.degraded(answer), *phrases.notices(answer)]
    if not answer.hits:
        texts.append(phrases.nothing(answer))
    return [line for text in texts if text for line in (escaped(text), "")]


def row(cells: Iterable[str]) -> str:
    """A table row."""
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Escape a text for a table cell, on one line."""
    return phrases.line(text).translate(_ESCAPES)


def code(text: str) -> str:
    """An id as inline code; if it has special characters, as escaped text."""
    text = one_line(text)
    safe = text.translate(_ESCAPES)
    return f"`{text}`" if text and safe == text else safe
