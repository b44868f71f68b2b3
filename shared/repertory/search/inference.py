"""Offers tools that can do a job by another way, when nothing does it directly."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from repertory.catalogue.item import Kind
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex, Rows, Scores, Term
from repertory.index.vectors import Filter
from repertory.search.answer import Evidence, Hit
from repertory.search.capabilities import inferences, offered, phrases
from repertory.search.editorial import boosted
from repertory.search.hits import hit
from repertory.search.query import Query

GOOD_ENOUGH = 0.5  # the confidence of a direct match from which nothing is inferred
FIRST = 0.98 * GOOD_ENOUGH  # that of the likeliest way: just below a good direct match
NEXT = 0.9  # the factor for each way that is less likely
MOST = 2  # tools offered for one capability
LOOKED_AT = 32  # tools that have all words of a phrase somewhere

ONLY_TOOLS = Filter(kinds=(Kind.TOOL,))

# What ``_perhaps`` found in each index, which takes most of the time.
_known: WeakKeyDictionary[KeywordIndex, dict[str, tuple[Rows, Scores]]] = WeakKeyDictionary()


def infer(
    query: Query,
    index: KeywordIndex,
    direct: list[Hit],
    confidence: Mapping[int, float],
    exclude: Sequence[str] = (),
) -> list[Hit]:
    """The direct hits with tools that can do the job by another way, best first, within the limit.

    What was found directly with more confidence keeps its own reason, and so does what a policy
    has moved.

    Args:
        query: The search.
        index: The keyword index.
        direct: What is shown without inference.
        confidence: Of all that was found, by row, also of what is too unsure to be shown.
        exclude: The ids of items to leave out.
    """
    found = {hit.id: hit for hit in direct}
    terms = index.terms(query.text)
    for inference in inferences(query.text):
        surest = FIRST * NEXT**inference.way
        if surest < query.threshold:
            break
        for entry, share in _tools(inference.capability, index, query, terms, confidence, exclude):
            sure = surest * share
            if entry.policy:
                sure = min(sure, boosted(sure, entry.policy.boost))
            known = found.get(entry.id)
            if sure < query.threshold or (known and _stands(known, sure)):
                continue
            evidence = msgspec.structs.replace(
                known.evidence if known else Evidence(), capability=str(inference)
            )
            reason = f"Capability inference ({inference})"
            found[entry.id] = hit(entry, sure, reason, evidence)
    return sorted(found.values(), key=lambda hit: -hit.confidence)[: query.limit]


def _stands(known: Hit, inferred: float) -> bool:
    return known.confidence >= inferred or bool(known.evidence.policy)


def _tools(
    capability: str,
    index: KeywordIndex,
    query: Query,
    terms: Sequence[Term],
    confidence: Mapping[int, float],
    exclude: Sequence[str],
) -> list[tuple[Entry, float]]:
    """The tools that offer a capability most surely, of equals those that fit the query best."""
    rows, weights = _perhaps(capability, index)
    through = index.allowed(rows, ONLY_TOOLS) & index.allowed(rows, query.where)
    rows, weights = rows[through], weights[through]
    matches = index.scores(terms, rows)
    found = []
    for place in np.argsort(-weights - matches, kind="stable")[:LOOKED_AT].tolist():
        row = int(rows[place])
        entry = index.entries[row]
        is_deprecated = entry.policy and entry.policy.deprecated_by
        if not is_deprecated and entry.id not in exclude:
            share = offered(capability, entry.name, entry.description, entry.server)
            fit = (confidence.get(row, 0.0), float(matches[place]))
            found.append((entry, share, fit))
    found.sort(key=lambda tool: (-tool[1], *(-one for one in tool[2]), tool[0].id))
    return [(entry, share) for entry, share, _ in found[:MOST] if share]


def _perhaps(capability: str, index: KeywordIndex) -> tuple[Rows, Scores]:
    """The rows that have all words of a phrase of a capability anywhere, and what these weigh."""
    known = _known.setdefault(index, {})
    if capability not in known:
        holding = [_holding(phrase, index) for phrase in phrases(capability)]
        rows, place = np.unique(np.concatenate([rows for rows, _ in holding]), return_inverse=True)
        best = np.zeros(len(rows), np.float32)
        np.maximum.at(best, place, np.concatenate([weights for _, weights in holding]))
        known[capability] = rows, best
    return known[capability]


def _holding(phrase: frozenset[str], index: KeywordIndex) -> tuple[Rows, Scores]:
    """The rows that have every word of a phrase, each with the least that one weighs there."""
    numbers = []
    for term in phrase:
        number = bisect_left(index.vocabulary, term)
        if number == len(index.vocabulary) or index.vocabulary[number] != term:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        numbers.append(number)
    rarest = min(numbers, key=lambda number: index.offsets[number + 1] - index.offsets[number])
    rows = index.rows[index.offsets[rarest] : index.offsets[rarest + 1]]
    weights = np.min([index.weights_in(number, rows) for number in numbers], axis=0)
    return rows[weights > 0], weights[weights > 0]
