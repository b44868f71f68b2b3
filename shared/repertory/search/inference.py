"""Offers tools that can do a job in a more general way if no hit does it well."""

from collections.abc import Collection, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.names import split_name
from repertory.index.keywords.document import NAME, Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.packed import Rows
from repertory.index.keywords.query_words import plain
from repertory.index.keywords.segment import Segment
from repertory.index.keywords.tokens import term_of, terms
from repertory.search.answer import Evidence, Hit
from repertory.search.capabilities import BY_PARAMETER, CAPABILITIES, Job, certainty, jobs
from repertory.search.confidence import probability, reaches
from repertory.search.editorial import boosted
from repertory.search.hits import hit
from repertory.search.query import Query

GOOD_ENOUGH = 0.5  # the confidence of a direct hit from which nothing is inferred
FIRST = 0.45  # the confidence of the likeliest tool
STEP = 0.03  # how much less each further tool has
MAX_TOOLS = 2  # offered for one capability
MAX_READ = 32  # tools of one capability whose parameters are read

_named: WeakKeyDictionary[Segment, Rows] = WeakKeyDictionary()


def infer(
    query: Query,
    index: KeywordIndex,
    direct: Sequence[Hit],
    items: Mapping[str, Item],
    exclude: Collection[str] = (),
) -> list[Hit]:
    """The tools to append to the direct hits, best first, as many as the limit leaves room for.

    None has more confidence than the last direct hit, or less than the threshold.

    ``items`` are the whole items of ``items_for`` by id, as far as they are available. Those in
    ``exclude`` are not offered.
    """
    ways = _ways(query)
    if not ways or not _is_wanted(query, [one.confidence for one in direct]):
        return []
    offered = _offered(query, index, {*exclude, *(one.id for one in direct)})
    found: list[Hit] = []
    for capability, job in ways.items():
        for entry in _able(capability, job, query, offered, items):
            sure = min([FIRST - STEP * len(found), *(one.confidence for one in direct)])
            if entry.policy:
                sure = min(sure, boosted(sure, entry.policy.boost))
            if sure >= query.threshold:
                why = f"{capability} → {job.label}"
                evidence = Evidence(probability=round(probability(sure), 4), capability=why)
                found.append(hit(entry, sure, f"Capability inference ({why})", evidence))
    return sorted(found, key=lambda one: -one.confidence)[: query.limit - len(direct)]


def items_for(
    query: Query, index: KeywordIndex, direct: Sequence[float], exclude: Collection[str]
) -> list[str]:
    """The ids of the items that ``infer`` needs: tools whose names leave open what they can do.

    ``direct`` are the confidences of the direct hits; these and what else is not offered are in
    ``exclude``.
    """
    ways = _ways(query)
    if not ways or not _is_wanted(query, direct):
        return []
    offered = _offered(query, index, exclude)
    unsure: list[str] = []
    for capability, job in ways.items():
        wanted = CAPABILITIES[capability][2]
        takes = _with_all(index, [*offered], [terms(word) for word in wanted])
        unsure += [
            entry.id
            for row, entry in offered.items()
            if row in takes and certainty(capability, job, entry, wanted) == BY_PARAMETER
        ][:MAX_READ]
    return unsure


def _is_wanted(query: Query, direct: Sequence[float]) -> bool:
    """Whether there is room beside direct hits of these confidences, and none is good enough."""
    return len(direct) < query.limit and not (direct and round(direct[0], 4) >= GOOD_ENOUGH)


def _ways(query: Query) -> dict[str, Job]:
    """The capabilities that can do what is asked for, each with the first job of them."""
    ways: dict[str, Job] = {}
    for job in jobs(query.text):
        for capability in job.by:
            ways.setdefault(capability, job)
    return ways


def _offered(query: Query, index: KeywordIndex, out: Collection[str]) -> dict[int, Entry]:
    """The tools that may be offered, by row."""
    rows = _tools(index)
    allowed = rows[index.allowed(rows, query.where)].tolist()
    in_order = sorted(zip(allowed, index.entries(allowed), strict=True), key=lambda one: one[1].id)
    return {row: entry for row, entry in in_order if entry.id not in out}


def _with_all(index: KeywordIndex, rows: list[int], phrases: list[list[str]]) -> set[int]:
    """Which of some rows have all terms of one of some phrases."""
    among = np.array(rows, np.int64)
    found: set[int] = set()
    for phrase in phrases:
        has = np.all([index.weights_in(term, among) > 0 for term in phrase], axis=0)
        found |= {*among[has].tolist()}
    return found


def _able(
    capability: str,
    job: Job,
    query: Query,
    offered: Mapping[int, Entry],
    items: Mapping[str, Item],
) -> list[Entry]:
    """The tools that have a capability most clearly; of equals, those that name the query's words.

    Parameters count for those tools whose names leave it open.
    """
    typed = set(terms(plain(query.text)))
    found = []
    for entry in offered.values():
        schema = items[entry.id].input_schema if entry.id in items else None
        if sure := certainty(capability, job, entry, (schema or {}).get("properties", ())):
            found.append((-sure, -len(typed.intersection(terms(entry.description))), entry))
    return [entry for *_, entry in sorted(found, key=lambda one: one[:2])[:MAX_TOOLS]]


def _tools(index: KeywordIndex) -> Rows:
    """The rows of the tools that may have a capability, by their own name or their server's."""
    rows = [part.rows(_named_in(part.segment)) for part in index.parts]
    return np.concatenate(rows) if rows else np.zeros(0, np.int32)


def _named_in(segment: Segment) -> Rows:
    if segment not in _named:
        words = {word for verbs, things, *_ in CAPABILITIES.values() for word in verbs | things}
        entries = ((row, segment.entry(row)) for row in _tools_with(segment, words))
        rows = [
            row
            for row, entry in entries
            if not (entry.policy and entry.policy.deprecated_by)
            and not words.isdisjoint(split_name(f"{entry.server} {entry.name}").split())
        ]
        _named[segment] = np.array(rows, np.int32)
    return _named[segment]


def _tools_with(segment: Segment, words: Collection[str]) -> list[int]:
    """The rows of the tools that have a stem of some words in their name or their server's."""
    columns, postings = segment.columns.fields, segment.postings
    stems = {*map(term_of, words)}
    servers = columns["server"].values
    found = columns["server"].is_any([one for one in servers if not stems.isdisjoint(terms(one))])
    for term in stems:
        if (number := postings.id_of(term)) is not None:
            rows, weights = postings.of_term(number)
            found[rows[reaches(weights, NAME.least)]] = True
    rows_found: list[int] = np.flatnonzero(found & columns["kind"].is_any([Kind.TOOL])).tolist()
    return rows_found
