"""Candidates to hits: what is shown of each, with its reason and its evidence."""

from collections.abc import Mapping, Sequence

import numpy as np

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.views import views
from repertory.index.keywords.document import WRITTEN, Entry
from repertory.index.keywords.index import KeywordIndex, Term
from repertory.search.answer import Evidence, Hit, Mode
from repertory.search.candidates import Candidates, Values, pool
from repertory.search.reasons import (
    Places,
    best_section,
    elsewhere,
    matched_terms,
    places,
    reason,
)

BODY = 0.4  # the share of what matched that must be in the body alone for a section to be named


def explained(
    found: Candidates,
    place: int,
    confidence: float,
    item: Item | None,
    notes: Sequence[str] = (),
) -> Hit:
    """The hit for one candidate.

    Args:
        found: The candidates.
        place: The place of the one to explain.
        confidence: Its confidence.
        item: The whole item, to look its sections up in; None when it cannot be had.
        notes: What policies did to it.
    """
    query, index, row = found.query.text, found.index, int(found.rows[place])
    entry = found.entry(place)
    close = float(found.close[place])
    matched = [(term, key) for term in found.terms if (key := matching(index, term, row))]
    there = places(entry, item)
    section = ""
    if item and not close:
        if (number := found.sections.get(row)) is not None:
            section = _heading(item, number)
        elif _is_of_the_body(matched, there):
            section = best_section(item.body, [term for term, _ in matched], index.vocabulary)
    semantic, keyword = found.mode is not Mode.KEYWORD, found.mode is not Mode.SEMANTIC
    evidence = Evidence(
        semantic=float(found.semantic[place]) if semantic else None,
        cosine=float(found.cosine[place]) if semantic else None,
        semantic_rank=_rank(found, found.cosine, place) if semantic else None,
        keyword=float(found.keyword[place]) if keyword else None,
        keyword_rank=_rank(found, found.keyword, place) if keyword else None,
        name=max(close, float(found.similarity[place])),
        section=section,
        terms=tuple(matched_terms(matched, there, elsewhere(entry, item))),
        policy=tuple(notes),
    )
    why = reason(query, entry, evidence, there, close)
    if notes:
        why = "; ".join([notes[0], *(part[:1].lower() + part[1:] for part in (*notes[1:], why))])
    return hit(entry, confidence, why, evidence)


def _is_of_the_body(matched: Sequence[tuple[Term, str]], there: Places) -> bool:
    """Whether a good part of what matched is in the body alone."""
    within = sum(term.idf for term, key in matched if key not in there)
    return within >= BODY * sum(term.idf for term, _ in matched) > 0


def matching(index: KeywordIndex, term: Term, row: int) -> str:
    """The indexed term, of those that a query's term stands for, that is in a row; else empty.

    A word as it is written comes before a stem, which nobody wrote.
    """
    held = (index.vocabulary[number] for number in term.rows if index.holds(number, row))
    return max(held, key=lambda key: key.startswith(WRITTEN), default="")


def hit(entry: Entry, confidence: float, why: str, evidence: Evidence) -> Hit:
    """A hit on an entry."""
    return Hit(
        id=entry.id,
        kind=entry.kind,
        name=entry.name,
        description=entry.description,
        source=entry.source,
        server=entry.server,
        path=entry.path,
        tags=entry.tags,
        confidence=round(confidence, 4),
        reason=why,
        matched_in=evidence.section,
        evidence=evidence,
    )


def shadowing(index: KeywordIndex, entry: Entry, precedence: Mapping[str, int]) -> str:
    """The id of the skill of the same name that is taken before this one; empty if it is the one.

    The source that comes first in the catalogue is taken first; within one, the id that does.
    """
    if entry.kind is not Kind.SKILL:
        return ""
    same = [
        other
        for row in index.names.exact(entry.name)
        if (other := index.entries[row]).kind is Kind.SKILL and other.name == entry.name
    ]
    first = min(
        [entry, *same], key=lambda other: (precedence.get(other.source, len(precedence)), other.id)
    )
    return "" if first.id == entry.id else first.id


def _heading(item: Item, number: int) -> str:
    """The heading of an embedded section."""
    for view in views(item.name, item.server, item.description, item.body):
        if view.section == number:
            return view.heading
    return ""


def _rank(found: Candidates, values: Values, place: int) -> int | None:
    """The place of a value among an arm's, from 1; None beyond what that arm gives."""
    rank = int(np.count_nonzero(values > values[place])) + 1
    return rank if values[place] > 0 and rank <= pool(found.query) else None
