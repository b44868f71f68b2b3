"""Searches for the same thing: those whose queries share half of their terms."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from repertory.usage.outcomes import Outcome

SHARED = 0.5  # of the terms of two queries, for one cluster
MAX_COMPARED = 50  # clusters with one term that a query is compared with


class Cluster(msgspec.Struct, kw_only=True, eq=False):
    """Searches for about the same thing.

    Attributes:
        terms: The terms of its most frequent query, which the others are compared with.
        groups: The searches of each query, the most frequent query first.
    """

    terms: frozenset[str]
    groups: list[Sequence[Outcome]]

    @property
    def outcomes(self) -> list[Outcome]:
        """All its searches."""
        return [one for group in self.groups for one in group]

    @property
    def queries(self) -> list[str]:
        """Its queries, the most frequent first; none if they are hashed."""
        return [group[-1].search.query for group in self.groups if group[-1].search.query]


def clusters(searches: Iterable[Outcome]) -> list[Cluster]:
    """Group searches, the largest group first; each search is in one group.

    The result depends on the searches alone, not on their order.
    """
    by_query: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in searches:
        by_query[outcome.search.digest].append(outcome)
    frequency = Counter(
        term for group in by_query.values() for term in frozenset(group[0].search.terms)
    )
    found: list[Cluster] = []
    with_term: defaultdict[str, list[int]] = defaultdict(list)  # places in ``found``
    # Of two that are equally near, one may be new: the same terms stay where they were.
    of_terms: dict[frozenset[str], Cluster] = {}
    for _, group in sorted(by_query.items(), key=lambda one: (-len(one[1]), one[0])):
        terms = frozenset(group[0].search.terms)
        rarest = sorted(terms, key=lambda term: (frequency[term], term))
        # Two that share half of their terms share one of these.
        rarest = rarest[: len(terms) - math.ceil(SHARED * len(terms)) + 1]
        places = {place for term in rarest for place in with_term[term]}
        cluster = of_terms.get(terms) or _nearest(terms, [found[place] for place in sorted(places)])
        if cluster is None:
            cluster = Cluster(terms=terms, groups=[])
            for term in rarest:
                if len(with_term[term]) < MAX_COMPARED:
                    with_term[term].append(len(found))
            found.append(cluster)
        of_terms[terms] = cluster
        cluster.groups.append(group)
    return sorted(found, key=lambda one: -len(one.outcomes))


def _nearest(terms: frozenset[str], near: Iterable[Cluster]) -> Cluster | None:
    """The first cluster that shares most terms; None if none shares enough."""
    best, best_share = None, 0.0
    for cluster in near:
        shared = len(terms & cluster.terms)
        share = shared / (len(terms) + len(cluster.terms) - shared)
        if share >= SHARED and share > best_share:
            best, best_share = cluster, share
    return best
