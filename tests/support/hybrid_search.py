"""Search engines with both arms, over in-memory vectors of word counts instead of a model's."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from typing_extensions import override

from repertory.catalogue.item import Item, item_key, point_id
from repertory.catalogue.names import split_name
from repertory.embedding.engine import EmbeddingEngine, Vectors, unit
from repertory.embedding.models import Model
from repertory.index.keywords.tokens import term_of
from repertory.index.vectors import (
    Filter,
    Match,
    Point,
    Searched,
    State,
    VectorAnswer,
    VectorQuery,
)
from repertory.search.engine import SearchEngine
from tests.support.keyword_search import in_segments, reader

DIMENSION = 2_048


class WordCounts(EmbeddingEngine):
    """Embeds a text as its word counts; each word is hashed to one dimension."""

    model = Model(id="test/word-counts", slug="word-counts", dimension=DIMENSION, max_tokens=512)
    device = "cpu"
    batch = 128

    @override
    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        counts = np.zeros((len(texts), DIMENSION), np.float32)
        for row, text in enumerate(texts):
            for word in split_name(text).split():
                counts[row, zlib.crc32(term_of(word).encode()) % DIMENSION] += 1
        return unit(counts)

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_texts(texts)


class Points(Searched):
    """The points of some items in memory, with the methods that a search calls."""

    def __init__(self, items: Sequence[Item], engine: EmbeddingEngine) -> None:
        self._items = {item_key(item.id): item for item in items}
        views = [(item, view) for item in items for view in item.views()]
        self._sections = [view.section for _, view in views]
        self._owners = [item for item, _ in views]
        self._vectors = engine.embed_texts([view.text for _, view in views])

    @property
    @override
    def name(self) -> str:
        return "points"

    @override
    def states(self, items: Sequence[str] | None = None) -> Iterator[State]:
        return iter(())

    @override
    def query(self, queries: Sequence[VectorQuery]) -> list[VectorAnswer]:
        """The nearest points that each filter allows, and the best cosines of requested keys."""
        return [self._answer(one) for one in queries]

    def _answer(self, query: VectorQuery) -> VectorAnswer:
        # Row by row, so that a point's cosine does not depend on the number of points.
        cosines = np.einsum("ij,j->i", self._vectors, query.vector)
        best = np.argsort(-cosines, kind="stable").tolist()
        matches = [
            Match(
                key=item_key(self._owners[at].id),
                section=self._sections[at],
                score=float(cosines[at]),
            )
            for at in best
            if _is_allowed(self._owners[at], query.where)
        ][: query.limit]
        wanted = {*query.keys}.difference(match.key for match in matches)
        scores: dict[int, float] = {}
        for item, cosine in zip(self._owners, cosines.tolist(), strict=True):
            if (key := item_key(item.id)) in wanted:
                scores[key] = max(cosine, scores.get(key, -1.0))
        return VectorAnswer(matches=matches, scores=scores)

    @override
    def records(self, keys: Sequence[int]) -> dict[str, dict[str, Any]]:
        """The records of some items."""
        items = [self._items[key] for key in keys if key in self._items]
        return {item.id: msgspec.to_builtins(item) for item in items}


def _is_allowed(item: Item, where: Filter) -> bool:
    return (
        (not where.kinds or item.kind in where.kinds)
        and (not where.sources or item.source in where.sources)
        and (not where.servers or item.server in where.servers)
        and (not where.tags or not {*where.tags}.isdisjoint(item.tags))
    )


def hybrid_engine(items: Iterable[Item]) -> SearchEngine:
    """A search engine over some items, with the keyword arm and the vector arm."""
    held, embedding = [*items], WordCounts()
    return SearchEngine(
        keywords=in_segments(held),
        collection=Points(held, embedding),
        embedding=lambda: embedding,
        reader=reader(),
    )


def points_of(item: Item, counts: EmbeddingEngine) -> Iterator[Point]:
    """The points of an item, as they are stored."""
    views = item.views()
    vectors = counts.embed_texts([view.text for view in views])
    for view, vector in zip(views, vectors, strict=True):
        yield Point(
            id=point_id(item_key(item.id), view.section),
            vector=vector,
            item=item.id,
            section=view.section,
            kind=item.kind,
            source=item.source,
            server=item.server,
            tags=item.tags,
            content_hash="",
            metadata_hash="",
            revision=1,
            record=msgspec.to_builtins(item),
        )
