"""The semantic arm: what the collection answers to the vectors of a query's texts."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.errors import StoreError
from repertory.index.keywords.query_words import plain
from repertory.index.vectors import Match, Searched, VectorAnswer, VectorQuery
from repertory.search.query import Query
from repertory.search.steps import MAX_EMBEDDED
from repertory.telemetry.spans import traced


class Nearest:
    """What the vectors answer to one text."""

    def __init__(self, collection: Searched, query: VectorQuery, answer: VectorAnswer) -> None:
        self._collection = collection
        self._query = query
        self._answer = answer

    @property
    def matches(self) -> Sequence[Match]:
        """The nearest points, best first."""
        return self._answer.matches

    def cosines(self, keys: Sequence[int]) -> Mapping[int, float]:
        """The cosines of items without a match, by key; missing ones are left out.

        Those that the query did not name are asked for now, and left out if the store is
        unavailable by now.
        """
        scores = dict(self._answer.scores)
        if rest := [*{*keys}.difference(self._query.keys)]:
            try:
                (more,) = self._collection.query([replace(self._query, limit=1, keys=rest)])
            except StoreError:
                pass
            else:
                scores |= more.scores
        return {key: scores[key] for key in keys if key in scores}


@traced("search vectors")
def ask(collection: Searched, queries: Sequence[VectorQuery]) -> list[Nearest]:
    """Ask a collection all of a search's queries at once.

    Raises:
        StoreError: The collection is unavailable.
    """
    answers = zip(queries, collection.query(queries), strict=True)
    return [Nearest(collection, query, answer) for query, answer in answers]


@traced("embed the query")
def embedded(engine: EmbeddingEngine, queries: Sequence[Query]) -> Vectors:
    """The vectors of a query as a whole and of its steps: shape ``(texts, dimension)``.

    Raises:
        ModelError: The engine failed.
    """
    whole, *steps = (plain(one.text) for one in queries)
    if not steps:
        return engine.embed_query(whole)[None]
    return engine.embed_queries([text[:MAX_EMBEDDED] for text in (whole, *steps)])
