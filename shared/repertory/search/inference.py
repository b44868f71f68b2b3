"""Offers tools that can do a job in another way if no hit does it directly."""

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from repertory.catalogue.item import Kind
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.matches import Matches
from repertory.index.keywords.postings import Rows, Scores
from repertory.index.vectors import Filter
from repertory.search.answer import Evidence, Hit
from repertory.search.capabilities import inferences, offered, phrases
from repertory.search.editorial import boosted
from repertory.search.hits import hit
from repertory.search.query import Query

GOOD_ENOUGH = 0.5  # the confidence of a direct hit from which nothing is inferred
FIRST = 0.98 * GOOD_ENOUGH  # the confidence of the likeliest way: just below a good direct hit
NEXT = 0.9  # the factor for each less likely way
MAX_TOOLS = 2  # offered for one capability
MAX_READ = 32  # tools, of those that contain all words of a phrase, whose text is read

ONLY_TOOLS = Filter(kinds=(Kind.TOOL,))

# The results of ``_likely`` for each index, which takes most of the time.
_known: WeakKeyDictionary[KeywordIndex, dict[str, tuple[Rows, Scores]]] = WeakKeyDictionary()


def infer(
    query: Query,
    index: KeywordIndex,
    direct: list[Hit],
    confidence: Mapping[int, float],
    exclude: Sequence[str] = (),
) -> list[Hit]:
    """The direct hits and the tools that do the job in another way, best first, up to the limit.

    A direct hit with more confidence keeps its own reason, and so does one that a policy moved.

    ``confidence`` is that of every candidate, by row, also below the threshold. Items whose ids are
    in ``exclude`` are not offered.
    """
    found = {hit.id: hit for hit in direct}
    matches = index.match(query.text)
    for inference in inferences(query.text):
        surest = FIRST * NEXT**inference.way
        if surest < query.threshold:
            break
        for entry, share in _tools(
            inference.capability, index, query, matches, confidence, exclude
        ):
            sure = surest * share
            if entry.policy:
                sure = min(sure, boosted(sure, entry.policy.boost))
            known = found.get(entry.id)
            if known and (known.confidence >= sure or known.evidence.policy):
                continue
            if sure < query.threshold:
                continue
            evidence = msgspec.structs.replace(
                known.evidence if known else Evidence(), capability=str(inference)
            )
            reason = f"Capability inference ({inference})"
            section = known.matched_in if known else ""
            found[entry.id] = hit(entry, sure, reason, evidence, section)
    return sorted(found.values(), key=lambda hit: -hit.confidence)[: query.limit]


def _tools(
    capability: str,
    index: KeywordIndex,
    query: Query,
    matches: Matches,
    confidence: Mapping[int, float],
    exclude: Sequence[str],
) -> list[tuple[Entry, float]]:
    """The tools that most certainly have a capability; of equals those that fit the query best."""
    rows, weights = _likely(capability, index)
    through = index.allowed(rows, ONLY_TOOLS) & index.allowed(rows, query.where)
    rows, weights = rows[through], weights[through]
    fit = matches.scores(rows)
    found = []
    for place in np.argsort(-weights - fit, kind="stable")[:MAX_READ].tolist():
        row = int(rows[place])
        entry = index.entries[row]
        is_deprecated = entry.policy and entry.policy.deprecated_by
        if not is_deprecated and entry.id not in exclude:
            share = offered(capability, entry.name, entry.description, entry.server)
            found.append((entry, share, confidence.get(row, 0.0), float(fit[place])))
    found.sort(key=lambda tool: (-tool[1], -tool[2], -tool[3], tool[0].id))
    return [(entry, share) for entry, share, *_ in found[:MAX_TOOLS] if share]


def _likely(capability: str, index: KeywordIndex) -> tuple[Rows, Scores]:
    """The rows that contain all words of a phrase of a capability, and the weight of these."""
    known = _known.setdefault(index, {})
    if capability not in known:
        holding = [index.postings.with_all(phrase) for phrase in phrases(capability)]
        rows, place = np.unique(np.concatenate([rows for rows, _ in holding]), return_inverse=True)
        best = np.zeros(len(rows), np.float32)
        np.maximum.at(best, place, np.concatenate([weights for _, weights in holding]))
        known[capability] = rows, best
    return known[capability]
