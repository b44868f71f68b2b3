"""When to use a skill, as its author says: "Use when the user asks for a quote, or …".

Agents ask in such words. The clause, or one element of its list, is a query; its right text is what
the description says before the clause, in which the words of the query need not be.
"""

import re

import msgspec

from training.dataset import Item

# The set `skill_usewhen`, which measures the encoder, is made of such clauses of this collection.
MEASURED = "github:openclaw/skills"
MIN_REST = 25  # characters before the clause; with fewer, the clause is all there is
MIN_QUERY = 15
MAX_QUERY = 400
MIN_WORDS = 3  # of an element of a list

_BEGINS = re.compile(
    r"(?:this skill should be used|should be used|(?:also )?use (?:this|it|the)?\s*"
    r"(?:skill|tool|agent|plugin)?\s*(?:proactively )?|invoke(?: this)?(?: skill)?|activates?"
    r"|apply(?: this)?|triggers?)\s*(?:\b(?:when(?:ever)?|for|if|on|to)\b|:|phrases:?)"
    r"|when (?:the )?user",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"(?:use (?:this|it)? ?(?:skill)? ?|this skill should be used |also |should be used "
    r"|invoke (?:this )?(?:skill )?|activates? |apply (?:this )?|triggers?:? ?(?:phrases:?)?)*"
    r"(?:when(?:ever)?|for|if|on|to|:)?\s*",
    re.IGNORECASE,
)
_EXCEPTIONS = re.compile(r"\b(?:do not|don'?t|not for|never|skip|avoid)\b", re.IGNORECASE)
_ELEMENTS = re.compile(r", (?:or |and )?|; | or ")
_SPACE = re.compile(r"\s+")
_EDGES = " -–—;,:(\"'."  # noqa: RUF001 - dashes


class Trigger(msgspec.Struct, frozen=True):
    """A clause that says when to use an item, the elements of its list, and what precedes it."""

    clause: str
    elements: list[str]
    rest: str


def trigger(item: Item) -> Trigger | None:
    """The trigger of a skill; None if its description has none."""
    description = _SPACE.sub(" ", item.description).strip()
    begin = _BEGINS.search(description)
    if item.kind != "skill" or item.group == MEASURED or not begin or begin.start() < MIN_REST:
        return None
    clause = description[begin.start() :]
    exception = _EXCEPTIONS.search(clause, MIN_REST)
    if exception:
        clause = clause[: exception.start()]
    lead_in = _LEAD_IN.match(clause)
    clause = clause[lead_in.end() if lead_in else 0 :][:MAX_QUERY].strip(_EDGES)
    if len(clause) < MIN_QUERY:
        return None
    elements = [one.strip(_EDGES) for one in _ELEMENTS.split(clause)]
    return Trigger(
        clause=clause,
        elements=[one for one in elements if len(one.split()) >= MIN_WORDS],
        rest=description[: begin.start()].strip(_EDGES),
    )
