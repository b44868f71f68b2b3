"""Clauses in descriptions on when to use a skill: "Use when the user asks for a quote, or …".

Agents use similar words in their queries. The clause, or one element of its list, becomes a query.
Its right text is the part of the description before the clause, which need not contain the words of
the query.
"""

import re

import msgspec

from training.dataset import Item

# The test set `skill_usewhen` consists of such clauses from this collection.
MEASURED = "github:openclaw/skills"
MIN_REST = 25  # minimum number of characters before the clause, which become the item's text
MIN_QUERY = 20
MAX_QUERY = 400
MIN_WORDS = 3  # minimum number of words of a list's element

_BEGINS = re.compile(
    r"\b(?:(?:this skill )?should (?:also )?be used|(?:also )?use|invoke|activates?|apply"
    r"|triggers?)(?: this| it| the)?(?: skill| tool| agent| plugin| sub-?agent)?"
    r"(?: proactively| automatically)?"
    r"(?:\s+\b(?:when(?:ever)?|for|if|on|to)\b|\s*:|\s+phrases\b:?)\s*"
    r"|\bwhen (?=(?:the )?user\b)",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"(?:not|n['\u2019]t|\bnever)\s+(?:\w+\s+){0,2}$", re.IGNORECASE)
# The end of a sentence, or a phrase on when not to use the skill or what to use instead.
_ENDS = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?](?=[\"')]*(?: (?-i:[A-Z*])|$))"
    r"|[.,;(\u2013\u2014-] ?(?:do not|don['\u2019]t|never|skip|avoid|see|for [^,;]{3,60},? use)\b"
    r"|\b(?:not for|instead of|rather than)\b",
    re.IGNORECASE,
)
_ELEMENTS = re.compile(r", (?:or |and )?|; | or | - ")
_SPACE = re.compile(r"\s+")
_EDGES = " -\u2013\u2014;,:(\"'.*"


class Trigger(msgspec.Struct, frozen=True):
    """A clause on when to use an item, the elements of its list, and the text before it."""

    clause: str
    elements: list[str]
    rest: str


def trigger(item: Item) -> Trigger | None:
    """The trigger of a skill; None if its description has none."""
    if item.kind != "skill" or item.group == MEASURED:
        return None
    description = _SPACE.sub(" ", item.description).strip()
    for begin in _BEGINS.finditer(description):
        rest = description[: begin.start()]
        if len(rest) < MIN_REST:
            return None
        if _NEGATED.search(rest):
            continue
        clause = description[begin.end() :]
        end = _ENDS.search(clause)
        clause = clause[: end.start() if end else None][:MAX_QUERY].strip(_EDGES)
        if len(clause) >= MIN_QUERY:
            elements = [one.strip(_EDGES) for one in _ELEMENTS.split(clause)]
            long = [one for one in elements if len(one.split()) >= MIN_WORDS]
            return Trigger(clause=clause, elements=long, rest=rest.strip(_EDGES))
    return None
