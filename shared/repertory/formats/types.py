"""An answer as Markdown with a TypeScript module of the tools found."""

import re
from collections.abc import Mapping

from repertory.catalogue.item import Item, Kind
from repertory.formats import phrases
from repertory.formats.markdown import code, escaped, remarks, row
from repertory.search.answer import Answer
from repertory.typescript.example import example
from repertory.typescript.module import module


def types_markdown(answer: Answer, items: Mapping[str, Item], gateway: str) -> str:
    """Write a table of the hits, a module of the tools among them, and an example call.

    The module calls the tools at the URL ``gateway``. It omits tools that are missing in ``items``.
    """
    lines = remarks(answer)
    if not answer.hits:
        return "\n".join(lines)
    lines += [row(("Tool", "Confidence", "Reason")), row(("---", "---", "---"))]
    for hit in answer.hits:
        lines.append(row((code(hit.id), f"{hit.confidence:.2f}", escaped(phrases.reason(hit)))))
    tools = [items[hit.id] for hit in answer.hits if hit.kind is Kind.TOOL and hit.id in items]
    if tools:
        made = module(tools, gateway)
        lines += [
            "",
            _fenced(made.text),
            "",
            f"With the module in `tools.ts`, and a server at {escaped(gateway)} that allows calls:",
            "",
            _fenced(example(tools[0], made)),
        ]
    return "\n".join([*lines, ""])


def _fenced(text: str) -> str:
    """TypeScript in a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}typescript\n{text}{fence}"
