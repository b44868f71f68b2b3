"""Offers what can do a job by another way, when nothing does it directly."""

from repertory.catalogue.item import Kind
from repertory.catalogue.names import split_name
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.tokens import terms
from repertory.search.answer import Evidence, Hit, Query
from repertory.search.capabilities import Inference, inferences
from repertory.search.hits import hit

GOOD_ENOUGH = 0.5  # the confidence of a direct match from which nothing is inferred
BEST = 0.49  # the confidence of an item that is named after the capability: below a direct match
NEXT = 0.9  # the factor for every way that is less likely
LOOKED_AT = 20  # items of a capability


def infer(query: Query, index: KeywordIndex, direct: list[Hit]) -> list[Hit]:
    """The direct hits with tools that can do the job by another way, best first, within the limit.

    What was found directly keeps its own reason.
    """
    found = {hit.id: hit for hit in direct}
    confidence = BEST
    for inference in inferences(query.text):
        for entry, share in _providers(index, inference, query):
            value = confidence * share
            if entry.id not in found and value >= query.threshold:
                evidence = Evidence(capability=str(inference))
                found[entry.id] = hit(entry, value, f"Capability inference ({inference})", evidence)
        confidence *= NEXT
    return sorted(found.values(), key=lambda hit: (-hit.confidence, hit.id))[: query.limit]


def _providers(
    index: KeywordIndex, inference: Inference, query: Query
) -> list[tuple[Entry, float]]:
    """The tools of a capability: 1 for a phrase of it in the name, less in the description."""
    providers: dict[int, float] = {}
    for phrase in inference.phrases:
        wanted = set(terms(phrase))
        for row in index.candidates(index.terms(phrase), LOOKED_AT, query.where):
            entry = index.entries[int(row)]
            if entry.kind is not Kind.TOOL:
                continue
            if wanted <= set(terms(split_name(entry.name))):
                share = 1.0
            elif wanted <= set(terms(f"{entry.name} {entry.description}")):
                share = NEXT
            else:
                continue
            providers[int(row)] = max(providers.get(int(row), 0.0), share)
    return [(index.entries[row], share) for row, share in providers.items()]
