"""The semantic arm: embeds a query's texts and asks the collection for the nearest points."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import Calibration
from repertory.errors import StoreError
from repertory.index.keywords.matches import MAX_WITH_COPIES
from repertory.index.keywords.query_words import plain
from repertory.index.vectors import Match, Searched, VectorQuery, nearest
from repertory.search.query import Query
from repertory.search.steps import MAX_EMBEDDED
from repertory.telemetry.spans import traced

DuplicateKeysOf = Callable[[Sequence[int]], Sequence[Hashable]]

# The nearest points at any limit of the query, so that a larger limit only adds hits.
MAX_BY_MEANING = 40
# An item has a point for each of its sections, so the nearest points may all belong to a few long
# documents. Then more points are requested, until they belong to at least this many items.
MIN_ITEMS = 20
MAX_POINTS = 1_000


class VectorResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the vectors to one text.

    Attributes:
        collection: The points.
        query: The query.
        matches: The nearest points, best first. Copies count once towards the query's limit.
        scores: The cosines of the query's ``keys`` without a match, by key.
        records: Records of likely items, by id, as JSON.
        calibration: The calibration of the model.
    """

    collection: Searched
    query: VectorQuery
    matches: Sequence[Match]
    scores: Mapping[int, float] = {}
    records: Mapping[str, str] = {}
    calibration: Calibration

    def cosines(self, keys: Sequence[int]) -> Mapping[int, float]:
        """The cosines of items without a match, by key; missing ones are left out.

        Items that were not part of the query are requested now, and left out if that fails.
        """
        scores = dict(self.scores)
        if rest := [*{*keys}.difference(self.query.keys)]:
            try:
                (more,) = self.collection.query(
                    [replace(self.query, limit=1, keys=rest, likely=(), points=None)]
                )
            except StoreError:
                pass
            else:
                scores |= more.scores
        return {key: scores[key] for key in keys if key in scores}


@traced("search vectors")
def search_vectors(
    collection: Searched,
    queries: Sequence[VectorQuery],
    calibration: Calibration,
    duplicate_keys_of: DuplicateKeysOf,
) -> list[VectorResult]:
    """Send all vector queries of a search to a collection at once.

    Args:
        collection: The points.
        queries: The vector query of each text.
        calibration: The calibration of the model.
        duplicate_keys_of: Returns a value for each item key, equal for copies.

    Raises:
        StoreError: The collection is unavailable.
    """
    return [
        VectorResult(
            collection=collection,
            query=query,
            matches=_of_enough_items(collection, query, answer.matches, duplicate_keys_of),
            scores=answer.scores,
            records=answer.records,
            calibration=calibration,
        )
        for query, answer in zip(queries, collection.query(queries), strict=True)
    ]


def _of_enough_items(
    collection: Searched,
    query: VectorQuery,
    matches: Sequence[Match],
    duplicate_keys_of: DuplicateKeysOf,
) -> Sequence[Match]:
    """The matches of a query, or more matches if these belong to too few items."""

    def is_enough(found: Sequence[Match]) -> bool:
        if len(found) >= MAX_POINTS:
            return True
        keys = {match.key for match in found}
        if len(keys) < MIN_ITEMS:
            return False
        # Copies have equal scores, so as many scores mean as many different items.
        is_varied = len({match.score for match in found}) >= MIN_ITEMS
        return is_varied or len({*duplicate_keys_of([*keys])}) >= MIN_ITEMS

    if len(matches) < query.limit or is_enough(matches):
        return matches
    more = nearest(collection, query.vector, 4 * query.limit, is_enough, query.where)
    keys = [*dict.fromkeys(match.key for match in more)][: max(query.limit, MAX_WITH_COPIES)]
    of = dict(zip(keys, duplicate_keys_of(keys), strict=True))
    first = {*islice(dict.fromkeys(of.values()), query.limit)}
    return [match for match in more if of.get(match.key) in first]


@traced("embed the query")
def vectors_of(
    engine: EmbeddingEngine, queries: Sequence[Query], corrected: Callable[[str], str]
) -> Vectors:
    """The vectors of a query as a whole and of its steps: shape ``(texts, dimension)``.

    ``corrected`` replaces the misspelt words of a text, which a model would take for others.

    Raises:
        ModelError: The engine failed.
    """
    whole, *steps = (corrected(plain(one.text)) for one in queries)
    if not steps:
        return engine.embed_query(whole)[None]
    return engine.embed_queries([text[:MAX_EMBEDDED] for text in (whole, *steps)])
