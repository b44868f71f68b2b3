"""Both arms of a search: the words of a query are read while it is embedded."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial

import msgspec
import numpy as np

from repertory.catalogue.item import Kind
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.models import Calibration
from repertory.errors import ModelError, StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.places import places_of
from repertory.index.layout import own_and_leads
from repertory.index.vectors import Searched, VectorQuery
from repertory.search.item_cache import ItemCache
from repertory.search.keyword_arm import MAX_BY_WORDS, KeywordResult, search_keywords
from repertory.search.query import Query
from repertory.search.semantic_arm import MAX_BY_MEANING, VectorResult, search_vectors, vectors_of
from repertory.telemetry.spans import carried


class Arms(msgspec.Struct, frozen=True, kw_only=True):
    """The keyword arm and the semantic arm of one catalogue.

    Attributes:
        keywords: The keyword index.
        collection: The vectors. If None, only the keyword arm answers.
        reader: Runs the keyword arm in parallel to the semantic arm.
        embedding: Returns the engine that embeds queries; raises ModelError if none is available.
        item_cache: The recently shown items.
    """

    keywords: KeywordIndex
    collection: Searched | None
    reader: Executor
    embedding: Callable[[], EmbeddingEngine]
    item_cache: ItemCache

    def search(
        self, queries: Sequence[Query], also: Sequence[int], problems: list[str]
    ) -> list[tuple[KeywordResult, VectorResult | None]]:
        """The results of both arms for each text of a query.

        There is no result of the vectors if they failed, which adds a problem, or if the model does
        not know any word of the text.

        Args:
            queries: The texts.
            also: Rows to score even if neither arm finds them.
            problems: A list that gets the error of the semantic arm.

        Raises:
            StoreError: The index has been closed.
        """
        # The keyword arm runs on another thread, because embedding releases the GIL.
        try:
            reading = [
                self.reader.submit(carried(self._search_keywords), one, also) for one in queries
            ]
        except RuntimeError as exc:  # another thread has shut the reader down
            raise StoreError("The index has been closed: open it again.") from exc
        found = self._search_vectors(queries, reading, problems)
        return [
            (self._by_words(one, also, words.result()[0], nearest), nearest)
            for one, words, nearest in zip(queries, reading, found, strict=True)
        ]

    def _search_keywords(
        self, query: Query, also: Sequence[int]
    ) -> tuple[KeywordResult, Callable[..., VectorQuery]]:
        """The results of the keyword arm, and a vector query that lacks only the vector."""
        limit = MAX_BY_WORDS if self.collection else MAX_BY_MEANING
        words = search_keywords(query, self.keywords, also, limit=limit)
        entries = dict(zip(words.likely, self.keywords.entries(words.likely), strict=True))
        cached = self.item_cache.get(entries.values())
        if self.collection:  # prepare the explanation of likely hits while the query is embedded
            for entry in [*entries.values()][: query.limit]:
                if entry.kind is Kind.TOOL or entry.id in cached:
                    places_of(entry, cached.get(entry.id))
        keys = [*words.keys.values()]
        return words, partial(
            VectorQuery,
            limit=MAX_BY_MEANING,
            where=query.where,
            keys=keys,
            points=own_and_leads(keys),  # computed here because it is slow
            likely=[
                words.keys[row]
                for row, entry in entries.items()
                if entry.kind is not Kind.TOOL and entry.id not in cached
            ],
        )

    def _by_words(
        self, query: Query, also: Sequence[int], words: KeywordResult, nearest: VectorResult | None
    ) -> KeywordResult:
        """The results of the keyword arm; more of them if the vectors were expected but failed."""
        if self.collection is None or nearest:
            return words
        return search_keywords(query, self.keywords, also, limit=MAX_BY_MEANING)

    def _search_vectors(
        self,
        queries: Sequence[Query],
        reading: Sequence[Future[tuple[KeywordResult, Callable[..., VectorQuery]]]],
        problems: list[str],
    ) -> Sequence[VectorResult | None]:
        """The answer of the vectors to each text.

        A single request finds the nearest points and the cosines of the items found by words.
        """
        if self.collection is None:
            return [None] * len(queries)
        try:
            embedding = self.embedding()
            vectors = vectors_of(embedding, queries, self.keywords.corrected)
            asked = [one.result()[1] for one in reading]
            known = [bool(vector.any()) for vector in vectors]
            wanted = [
                one(vector=vector)
                for one, vector, is_known in zip(asked, vectors, known, strict=True)
                if is_known
            ]
            calibration = embedding.model.calibration or Calibration()
            found = iter(
                search_vectors(self.collection, wanted, calibration, self._duplicate_keys)
                if wanted
                else ()
            )
            return [next(found) if is_known else None for is_known in known]
        except (ModelError, StoreError) as error:
            problems.append(str(error))
            return [None] * len(queries)

    def _duplicate_keys(self, keys: Sequence[int]) -> Sequence[Hashable]:
        """The ``duplicate_key`` for each item key; for an unknown item a unique value."""
        rows = self.keywords.rows_of(keys)
        of = self.keywords.duplicate_keys(np.fromiter(rows.values(), np.int64, len(rows)))
        found: Mapping[int, Hashable] = dict(zip(rows, of.tolist(), strict=True))
        return [found.get(key, (key,)) for key in keys]
