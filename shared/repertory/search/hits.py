"""Candidates to hits: what is shown of each, with its reason and its evidence."""

from collections.abc import Mapping, Sequence

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.views import views
from repertory.index.keywords.document import WRITTEN, Entry
from repertory.index.keywords.index import KeywordIndex, Term
from repertory.index.keywords.tokens import words
from repertory.search.answer import Evidence, Hit, Mode
from repertory.search.candidates import Candidates, Values
from repertory.search.reasons import best_section, matched_terms, reason

BODY = 0.4  # the share of what matched that must be in the body alone for a section to be named


def explained(found: Candidates, place: int, confidence: float, item: Item | None) -> Hit:
    """The hit for one candidate.

    Args:
        found: The candidates.
        place: The place of the one to explain.
        confidence: Its confidence.
        item: The whole item, to look its sections up in; None when it cannot be had.
    """
    query, index, row = found.query.text, found.index, int(found.rows[place])
    entry = found.entry(place)
    close = float(found.close[place])
    there = [(term, key) for term in found.terms if (key := _matched(index, term, row))]
    shown = f"{entry.name} {entry.description}"
    matched = matched_terms(there, shown)
    section = ""
    if item and not close:
        if (number := found.sections.get(row)) is not None:
            section = _heading(item, number)
        elif _is_of_the_body(there, shown):
            section = best_section(item.body, [term for term, _ in there], index.vocabulary)
    semantic, keyword = found.mode is not Mode.KEYWORD, found.mode is not Mode.SEMANTIC
    evidence = Evidence(
        semantic=float(found.semantic[place]) if semantic else None,
        cosine=float(found.cosine[place]) if semantic else None,
        semantic_rank=_rank(found.cosine, place) if semantic else None,
        keyword=float(found.keyword[place]) if keyword else None,
        keyword_rank=_rank(found.keyword, place) if keyword else None,
        name=max(close, float(found.similarity[place])),
        section=section,
        terms=tuple(matched),
    )
    return hit(entry, confidence, reason(query, entry, evidence, close), evidence)


def _is_of_the_body(matched: Sequence[tuple[Term, str]], shown: str) -> bool:
    """Whether a good part of what matched is in the body alone."""
    told = {key for written, term in words(shown) for key in (term, WRITTEN + written)}
    elsewhere = sum(term.idf for term, key in matched if key not in told)
    return elsewhere >= BODY * sum(term.idf for term, _ in matched) > 0


def _matched(index: KeywordIndex, term: Term, row: int) -> str:
    """The indexed term, of those that a query's term stands for, that is in a row; else empty."""
    for number in term.rows:
        if index.holds(number, row):
            return index.vocabulary[number]
    return ""


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


def _rank(values: Values, place: int) -> int | None:
    """The place of a value among all, from 1; None for one that found nothing."""
    return int((values > values[place]).sum()) + 1 if values[place] > 0 else None
