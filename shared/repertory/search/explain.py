"""Explains why a search shows an item, or why it does not."""

import math
from collections.abc import Iterator, Sequence

from rapidfuzz import fuzz, process

from repertory.catalogue.item import Item
from repertory.index.keywords.places import Places
from repertory.index.vectors import Filter
from repertory.search.answer import Hit, Mode
from repertory.search.candidates import Candidates, pool
from repertory.search.explanation import Better, Explanation, Word
from repertory.search.query import Query

MAX_BETTER = 5  # items that are listed as better
MAX_NEAR = 20  # missing words for which a similar one is searched
NEAR = 70  # the similarity, 0…100, from which a word is near a missing one


def explanation(
    hit: Hit,
    found: Candidates,
    *,
    item: Item | None,
    shown: Sequence[Hit],
    ranking: Sequence[Hit],
    is_allowed: bool,
    degraded: str,
) -> Explanation:
    """Explain one item.

    Args:
        hit: The item, scored.
        found: The candidates of the search.
        item: The whole item; None if it is unavailable.
        shown: The hits that the search shows.
        ranking: All hits, best first.
        is_allowed: Whether the filters allow the item.
        degraded: Why not both arms answered.
    """
    is_shown = any(other.id == hit.id for other in shown)
    order = shown if is_shown else ranking
    place = next((place for place, other in enumerate(order) if other.id == hit.id), None)
    if place is None:  # hits with more confidence would come before it
        better = [other for other in ranking if other.confidence > hit.confidence]
    else:
        better = list(order[:place])
    if is_shown:
        verdict = f"Shown, at place {len(better) + 1} of {len(shown)}."
    elif not is_allowed:
        verdict = _filtered_out(hit, found.query.where)
    elif place is None:
        verdict = _not_found(hit, found)
    else:
        verdict = _left_out(hit, better, found.query)
    if not is_shown:
        verdict = " ".join(
            (
                verdict,
                *(note if note.endswith(".”") else f"{note}." for note in hit.evidence.policy),
            )
        )
    return Explanation(
        query=found.query,
        verdict=verdict,
        shown=is_shown,
        rank=None if place is None else place + 1,
        hit=hit,
        words=tuple(_words(found, found.index.row_of[hit.id], item)),
        better=tuple(
            Better(id=other.id, confidence=other.confidence) for other in better[:MAX_BETTER]
        ),
        mode=found.mode,
        degraded=degraded,
        items=len(found.index),
    )


def _filtered_out(hit: Hit, where: Filter) -> str:
    faults = [
        f"its {name} {' and '.join(has) or 'none'}, and {' or '.join(wanted)} was asked for"
        for name, has, wanted in (
            ("kind is", (hit.kind,), where.kinds),
            ("source is", (hit.source,), where.sources),
            ("server is", tuple(filter(None, [hit.server])), where.servers),
            ("tags are", hit.tags, where.tags),
        )
        if wanted and not set(has) & set(wanted)
    ]
    return (
        f"Filtered out: {'; '.join(faults)}. Without the filter its confidence is "
        f"{hit.confidence:.2f}."
    )


def _not_found(hit: Hit, found: Candidates) -> str:
    arms = "its words are not" if found.mode is Mode.KEYWORD else "neither meaning nor words are"
    return (
        f"Not found: {arms} among the {pool(found.query)} best for this query; its confidence is "
        f"{hit.confidence:.2f}."
    )


def _left_out(hit: Hit, better: Sequence[Hit], query: Query) -> str:
    """Why a hit that was found is not shown, and which options would show it."""
    needed = []
    is_beyond = len(better) >= query.limit
    if hit.confidence < query.threshold or not is_beyond:
        fault = (
            f"Hidden: its confidence {hit.confidence:.2f} is below the threshold "
            f"{query.threshold:g}"
        )
        needed.append(f"a threshold of {_rounded_down(hit.confidence):g}")
    else:
        count = "1 item fits" if len(better) == 1 else f"{len(better):,} items fit"
        best = f"the best is {better[0].id} ({better[0].confidence:.2f})"
        fault = f"Not among the first {query.limit:,}: {count} better, {best}"
    if is_beyond:
        needed.append(f"a limit of {len(better) + 1}")
    return f"{fault}; {' and '.join(needed)} would show it."


def _rounded_down(confidence: float) -> float:
    """A confidence of four digits rounded down to two."""
    return max(math.floor(100 * confidence - 0.005), 0) / 100


def _words(found: Candidates, row: int, item: Item | None) -> Iterator[Word]:
    """Each word of the query, and how the item has it."""
    places = Places(found.index.entries[row], item, with_body=True)
    spellings = places.words()
    total = sum(term.idf for term in found.matches.terms) or 1.0
    missing = 0
    for term in found.matches.terms:
        share = round(term.idf / total, 4)
        if match := found.matches.in_item_term(term, row, places):
            fields, spelling = match.fields, match.spelling
            yield Word(typed=term.typed, matched=spelling, fields=fields, share=share)
            continue
        near = None
        if (missing := missing + 1) <= MAX_NEAR:
            near = process.extractOne(term.typed, spellings, scorer=fuzz.ratio, score_cutoff=NEAR)
        yield Word(typed=term.typed, near=near[0] if near else "", share=share)
