"""Answers as short text: one line per hit, with what a model needs to use it."""

from collections.abc import Mapping, Sequence

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.safety import DESTRUCTIVE
from repertory.formats.phrases import also_as, degraded, nothing, notices
from repertory.formats.signatures import signature
from repertory.search.answer import Answer, Hit
from repertory.text import cut, one_line

MAX_DESCRIPTION_LENGTH = 140  # characters
MAX_QUERY_LENGTH = 80  # characters of the heading of each of several answers
MAX_SECTION_LENGTH = 80  # characters

_WARNINGS = ("Deprecated", "When not to use it")  # prefixes of a policy's notes


def compact(answers: Sequence[Answer], tools: Mapping[str, Item]) -> str:
    """Write one line per hit, best first; several answers each get a heading.

    An item or notice that several answers share is written only once.

    Args:
        answers: The answers.
        tools: The complete tools, by id; missing ones are shown without parameters.
    """
    lines: list[str] = []
    described: set[str] = set()
    for answer in answers:
        if len(answers) > 1:
            lines.append(f"# {cut(one_line(answer.query), MAX_QUERY_LENGTH)}")
        lines += [] if answer.hits else [nothing(answer)]
        for hit in answer.hits:
            if hit.id in described:
                lines.append(f"{hit.confidence:.2f} {one_line(hit.id)}, as above")
            else:
                lines.append(_line(hit, tools.get(hit.id)))
                described.add(hit.id)
    known = [note for one in answers for note in (degraded(one), *notices(one)) if note]
    return "\n".join([*lines, *dict.fromkeys(known)])


def _line(hit: Hit, tool: Item | None) -> str:
    """The confidence, the tool call or id, warnings, copies, and the start of the description."""
    is_tool = hit.kind is Kind.TOOL
    parts = [signature(hit.id, tool) if is_tool else f"{hit.kind} {one_line(hit.id)}"]
    if hit.matched_in:
        parts.append(f"section {cut(one_line(hit.matched_in.lstrip('# ')), MAX_SECTION_LENGTH)!r}")
    if DESTRUCTIVE in hit.tags and is_tool:
        parts.append(DESTRUCTIVE)
    if hit.duplicates:
        parts.append(also_as(hit))
    description = cut(one_line(hit.description), MAX_DESCRIPTION_LENGTH)
    warnings = [one_line(note) for note in hit.evidence.policy if note.startswith(_WARNINGS)]
    texts = [*(f"{warning.rstrip('.')}." for warning in warnings), description]
    says = " ".join(filter(None, texts))
    return f"{hit.confidence:.2f} {', '.join(parts)}" + (f": {says}" if says else "")
