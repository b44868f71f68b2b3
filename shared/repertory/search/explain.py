"""Explains why a search shows an item, or why it does not."""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace
from rapidfuzz import fuzz, process

from repertory.catalogue.item import Item
from repertory.index.keywords.places import Places
from repertory.index.vectors import NO_FILTER, Filter
from repertory.search.answer import Hit, Mode, rounded_down
from repertory.search.candidates import Candidates
from repertory.search.engine import SearchEngine
from repertory.search.explanation import Better, Explanation, Word
from repertory.search.lookup import row_of
from repertory.search.query import Query
from repertory.search.ranking import Task
from repertory.search.semantic_arm import MAX_BY_MEANING
from repertory.text import counted, cut, one_line

NO_LIMIT = 1_000_000  # more than any search finds
MAX_BETTER = 5  # better items that are listed
MAX_NEAR = 20  # missing words for which a similar word is looked up
MAX_STEP_LENGTH = 100  # characters of a step that are shown
NEAR = 70  # the minimum similarity, 0…100, of a word to a missing one


def explain(engine: SearchEngine, query: Query, item: str) -> Explanation:
    """Explain why a search shows an item, or why it does not.

    ``item`` is the item's id, or its name where no other item has it.

    Raises:
        UnknownItemError: The item is unknown.
        UsageError: As for ``SearchEngine.search``.
        StoreError: The items cannot be read now.
    """
    index = engine.keywords
    task = engine.rank(replace(query, limit=NO_LIMIT))  # with the confidence of every item
    query = replace(task.query, limit=query.limit)
    row = row_of(index, item)
    item_id = index.entry(row).id
    is_allowed = bool(index.allowed(np.array([row]), query.where)[0])
    ranking = engine.hits(task, query, max_copies=NO_LIMIT)
    place = _place(ranking, item_id)
    is_shown = place is not None
    if place is None:
        every = replace(query, threshold=0.0, limit=NO_LIMIT)
        ranking = engine.hits(task, every, max_copies=NO_LIMIT)
        place = _place(ranking, item_id)
    if place is None:  # it would rank after the hits with a higher confidence
        hit = _as_if_found(engine, query, row, is_allowed=is_allowed)
        better = [other for other in ranking if other.confidence > hit.confidence]
    else:
        hit, better = ranking[place], ranking[:place]
        if hit.id != item_id:
            (hit,) = engine.hits_at(task, [row])
    found = task.texts[task.merged.text.get(row, 0)].candidates
    if is_shown:
        verdict = _shown(ranking, len(better), item_id)
    elif not is_allowed:
        verdict = _with_notes(_filtered_out(hit, query.where), hit)
    elif place is None:
        verdict = _with_notes(_not_found(hit, found), hit)
    else:
        verdict = _with_notes(_left_out(hit, better, query), hit)
    return Explanation(
        query=query,
        verdict=verdict + _about_steps(task, row),
        shown=is_shown,
        rank=None if place is None else place + 1,
        hit=hit,
        words=tuple(_words(found, row, engine.available_items([item_id]).get(item_id))),
        better=tuple(
            Better(id=other.id, confidence=other.confidence) for other in better[:MAX_BETTER]
        ),
        mode=found.mode,
        degraded=" ".join(task.problems),
        notices=engine.notices_on(task),
        items=len(index),
    )


def _about_steps(task: Task, row: int) -> str:
    """Which step of a task an item fits; empty for a single need."""
    steps = task.texts[1:]
    if not steps:
        return ""
    number = task.merged.text.get(row, 0)
    step = cut(one_line(task.texts[number].candidates.query.text), MAX_STEP_LENGTH)
    fits = f"step {number} (“{step}”)" if number else "the task as a whole"
    return (
        f" The task has {len(steps)} steps, and the best item of each comes first; this item fits "
        f"{fits} best."
    )


def _as_if_found(engine: SearchEngine, query: Query, row: int, *, is_allowed: bool) -> Hit:
    """The hit for a row that the search does not find, scored as if it had been found."""
    where = query.where if is_allowed else NO_FILTER
    scored = engine.rank(replace(query, where=where, limit=NO_LIMIT), also=[row])
    (hit,) = engine.hits_at(scored, [row])
    if is_allowed:  # neither arm found it
        hit = replace(hit, evidence=replace(hit.evidence, semantic_rank=None, keyword_rank=None))
    return hit


def _place(hits: Sequence[Hit], item: str) -> int | None:
    """The place of the hit that is an item or names it as a duplicate; None if missing."""
    return next(
        (place for place, hit in enumerate(hits) if item in (hit.id, *hit.duplicates)), None
    )


def _shown(hits: Sequence[Hit], place: int, item: str) -> str:
    at, same = f"at place {place + 1} of {len(hits)}", hits[place].id
    return f"Shown, {at}." if same == item else f"Shown as {same}, {at}: they are the same."


def _with_notes(verdict: str, hit: Hit) -> str:
    """A verdict with the effects of policies on the hit."""
    notes = (note if note.endswith(".”") else f"{note}." for note in hit.evidence.policy)
    return " ".join((verdict, *notes))


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
    depth = found.keyword_depth
    if found.mode is Mode.KEYWORD:
        arms = f"its words are not among the {depth} best"
    else:
        arms = (
            f"its meaning is not among the {MAX_BY_MEANING} best, nor are its words among the "
            f"{depth} best"
        )
    return f"Not found: {arms} for this query; its confidence is {hit.confidence:.2f}."


def _left_out(hit: Hit, better: Sequence[Hit], query: Query) -> str:
    """Why an item that was found is not shown, and which options would show it."""
    needed = []
    is_beyond = len(better) >= query.limit
    if hit.confidence < query.threshold or not is_beyond:
        confidence = round(hit.confidence, 2)  # as displayed with the item
        if confidence >= query.threshold:
            confidence = rounded_down(hit.confidence)
        fault = (
            f"Hidden: its confidence {confidence:.2f} is below the threshold {query.threshold:g}"
        )
        needed.append(f"a threshold of {rounded_down(hit.confidence):g}")
    else:
        count = counted(len(better), "item comes", "items come")
        best = f"the best is {better[0].id} ({better[0].confidence:.2f})"
        fault = f"Not among the first {query.limit:,}: {count} before it, {best}"
    if is_beyond:
        needed.append(f"a limit of {len(better) + 1}")
    return f"{fault}; {' and '.join(needed)} would show it."


def _words(found: Candidates, row: int, item: Item | None) -> Iterator[Word]:
    """Each word of the query, with its match in the item."""
    places = Places(found.index.entry(row), item, with_body=True)
    spellings = places.words()
    total = sum(term.rarity for term in found.matches.terms) or 1.0
    missing = 0
    for term in found.matches.terms:
        share = round(term.rarity / total, 4)
        if found.matches.has(term, row):
            match = found.matches.in_item(term, row, places)
            fields, spelling = match.fields, match.spelling
            yield Word(typed=term.typed, matched=spelling, fields=fields, share=share)
            continue
        near = None
        if (missing := missing + 1) <= MAX_NEAR:
            near = process.extractOne(term.typed, spellings, scorer=fuzz.ratio, score_cutoff=NEAR)
        yield Word(typed=term.typed, near=near[0] if near else "", share=share)
