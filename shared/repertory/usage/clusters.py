"""Clusters of searches for the same thing, whose queries share at least half of their terms."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from repertory.usage.outcomes import Outcome

SHARED = 0.5  # the least share of common terms in a cluster (Jaccard)
MAX_COMPARED = 50  # clusters for each term that a query is compared with


class Cluster(msgspec.Struct, kw_only=True, eq=False):
    """Searches for about the same thing.

    Attributes:
        terms: The terms of its most frequent query, with which the others are compared.
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
        """Its queries, most frequent first; empty if they are hashed."""
        return [group[-1].search.query for group in self.groups if group[-1].search.query]


def clusters(searches: Iterable[Outcome]) -> list[Cluster]:
    """Group searches into clusters, the largest first. The order of the searches does not matter.

    Each search is in exactly one cluster.
    """
    by_query: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in searches:
        by_query[outcome.search.digest].append(outcome)
    frequency = Counter(
        term for group in by_query.values() for term in frozenset(group[0].search.terms)
    )
    found: list[Cluster] = []
    with_term: defaultdict[str, list[int]] = defaultdict(list)  # places in ``found``
    # Queries with the same terms stay together, even if a new cluster is nearer.
    of_terms: dict[frozenset[str], Cluster] = {}
    for _, group in sorted(by_query.items(), key=lambda one: (-len(one[1]), one[0])):
        terms = frozenset(group[0].search.terms)
        rarest = sorted(terms, key=lambda term: (frequency[term], term))
        # Two queries that share half of their terms share at least one of these.
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
    """The cluster that shares the most terms, ties by order; None if the share is too small."""
    best, best_share = None, 0.0
    for cluster in near:
        shared = len(terms & cluster.terms)
        share = shared / (len(terms) + len(cluster.terms) - shared)
        if share >= SHARED and share > best_share:
            best, best_share = cluster, share
    return best
