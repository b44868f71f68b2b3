"""Turns candidates into hits: the displayed fields, the reason and the evidence."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import compress

import numpy as np
from msgspec.structs import replace

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.precedence import Precedence
from repertory.catalogue.views import SECTION_LEVEL, Section, split_at_headings
from repertory.index.keywords.document import BODY, NAME, Entry, shown_description
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.lexicon import QueryTerm
from repertory.index.keywords.matches import ItemMatch
from repertory.index.keywords.names import EXACT
from repertory.index.keywords.places import places_of
from repertory.index.keywords.query_words import identifier
from repertory.index.vectors import Filter
from repertory.search.answer import Evidence, Hit, Mode, Term
from repertory.search.candidates import Candidates
from repertory.search.confidence import probability
from repertory.search.quotations import quotation
from repertory.search.reasons import (
    MIN_SEMANTIC,
    NO_SECTION,
    best_section,
    quoted_in,
    reason,
    terms_of,
)
from repertory.search.semantic_arm import MAX_BY_MEANING

# A section is named only if this share of the matched terms, by rarity, occurs just in the body.
BODY_SHARE = 0.4
_SKILLS = Filter(kinds=(Kind.SKILL,))


def explained(
    found: Candidates,
    place: int,
    confidence: float,
    item: Item | None,
    notes: Sequence[str],
    shadowed_by: str,
) -> Hit:
    """The hit for the candidate at a place.

    Its section is read from ``item``, the whole item, if that is available. ``notes`` are the
    effects of policies. For ``shadowed_by`` see ``shadowing``.
    """
    query, row, entry = found.query.text, int(found.rows[place]), found.entry(place)
    close = float(found.close[place])
    places = places_of(entry, item)
    terms = _matched_terms(found, place)
    matched = [found.matches.in_item(term, row, places) for term in terms]
    section, within = _matched_section(found, place, item, matched) if not close else ("", [])
    cosine, score = float(found.cosine[place]), float(found.keyword[place])
    semantic = found.mode is Mode.HYBRID
    evidence = Evidence(
        probability=round(probability(confidence), 4),
        semantic=round(_share(float(found.semantic[place])), 4) if semantic else None,
        cosine=round(cosine, 4) if semantic else None,
        semantic_rank=_rank(found.sorted_cosines, cosine, MAX_BY_MEANING) if semantic else None,
        keyword=round(score, 4),
        keyword_rank=_rank(found.sorted_keyword_scores, score, found.keyword_depth),
        name=round(max(close, float(found.similarity[place])), 4),
        terms=tuple(
            Term(typed=one.term.typed, matched=one.spelling, field=next(iter(one.fields), ""))
            for one in matched
        ),
        policy=tuple(notes),
    )
    if row in found.quoted and close < EXACT:
        why = quoted_in(section)
    else:
        why = reason(query, entry, evidence, places, close, section, within)
    if notes:
        why = "; ".join([notes[0], *(one[:1].lower() + one[1:] for one in (*notes[1:], why))])
    return hit_on(entry, confidence, why, evidence, section, shadowed_by)


def _matched_terms(found: Candidates, place: int) -> Iterable[QueryTerm]:
    """The query's terms that a candidate has; only the whole identifier, if it has that."""
    whole, typed = found.matches.whole, identifier(found.query.text)
    if typed and found.matches.has(whole, int(found.rows[place])):
        return [replace(whole, typed=typed)]
    return compress(found.matches.terms, found.weights[:, place] > 0)


def _matched_section(
    found: Candidates, place: int, item: Item | None, matched: Sequence[ItemMatch]
) -> tuple[str, list[Term]]:
    """The heading of the section that matches best, and the terms in it; empty if none matches.

    A quotation's or an identifier's section is the first one with it. The section of the nearest
    meaning needs a term if its meaning is not near.
    """
    if not item:
        return "", []
    if int(found.rows[place]) in found.quoted and (wanted := quotation(found.query.text)):
        parts = filter(wanted.is_within, split_at_headings(item.body))
        return next(parts, NO_SECTION).heading, []
    if typed := identifier(found.query.text):
        for part in split_at_headings(item.body):
            # It may also be a part of a longer identifier, which has other terms.
            may_have_it = typed in f"{part.heading}\n{part.text}".lower()
            if may_have_it and (within := _words_of(part, matched)):
                return (part.heading, within) if part.heading else ("", [])
    if (number := found.sections.get(int(found.rows[place]))) is not None:
        part = _section(item, number)
        within = _words_of(part, matched)
        if within or _share(float(found.semantic[place])) >= MIN_SEMANTIC:
            return part.heading, within
    held = [match.term for match in matched]
    part = best_section(item.body, held) if _is_of_the_body(matched) else NO_SECTION
    within = _words_of(part, matched)
    return (part.heading, within) if within else ("", [])


def _words_of(section: Section, matched: Sequence[ItemMatch]) -> list[Term]:
    """The matched terms in a section; none if the item's name has them all."""
    within = terms_of(section, [match.term for match in matched])
    named = {match.term.typed for match in matched if match.fields[:1] == (NAME.name,)}
    return within if any(term.typed not in named for term in within) else []


def _is_of_the_body(matched: Sequence[ItemMatch]) -> bool:
    """Whether many of the matched terms are only in the body."""
    within = sum(match.term.rarity for match in matched if match.fields[:1] == (BODY.name,))
    return within >= BODY_SHARE * sum(match.term.rarity for match in matched) > 0


def hit_on(
    entry: Entry,
    confidence: float,
    why: str,
    evidence: Evidence,
    section: str = "",
    shadowed_by: str = "",
) -> Hit:
    """A hit on an entry; ``section`` is the heading of the best section, if any."""
    return Hit(
        id=entry.id,
        kind=entry.kind,
        name=entry.name,
        description=shown_description(entry),
        source=entry.source,
        server=entry.server,
        path=entry.path,
        tags=entry.tags,
        confidence=confidence,
        reason=why,
        matched_in=section,
        shadowed_by=shadowed_by,
        evidence=evidence,
    )


def shadowing(
    index: KeywordIndex,
    entry: Entry,
    precedence: Precedence,
    is_gone: Callable[[Entry], bool] | None = None,
) -> str:
    """The id of the skill of the same name that takes precedence; empty if this one does.

    Skills of earlier sources in the catalogue take precedence; within a source, lower ids do.
    """
    if entry.kind is not Kind.SKILL:
        return ""
    rows = np.array([*index.names.exact(entry.name)], np.int64)
    skills = rows[index.allowed(rows, _SKILLS)].tolist()  # reading entries of all kinds is slow
    same = [
        other
        for other in index.entries(skills)
        if other.id != entry.id and other.name == entry.name and not (is_gone and is_gone(other))
    ]
    first = min([entry, *same], key=precedence)
    return "" if first.id == entry.id else first.id


def _section(item: Item, number: int) -> Section:
    """The section of an item with the number of its view."""
    heading = next((view.heading for view in item.views() if view.section == number), "")
    parts = split_at_headings(item.body, deepest=SECTION_LEVEL)
    return next((part for part in parts if part.heading == heading), NO_SECTION)


def _share(log_odds: float) -> float:
    """The probability by the semantic arm alone."""
    return 1 / (1 + math.exp(-log_odds))


def _rank(values: Sequence[float], value: float, depth: int) -> int | None:
    """The rank of a value among an arm's values, from 1; None beyond the arm's depth.

    ``values`` are ascending.
    """
    rank = len(values) - bisect_right(values, value) + 1
    return rank if value > 0 and rank <= depth else None
