"""Makes the search engines of one process, which share a model and an item cache."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial

from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.words import WORDS_MODEL
from repertory.errors import ModelError
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Collection
from repertory.indexing.collection_names import model_slug
from repertory.live_search.known_sources import KnownSources
from repertory.search.engine import SearchEngine
from repertory.search.item_cache import ItemCache

NO_VECTORS = (
    "No model was available when this was indexed, so only keywords are searched. "
    "`repertory index` adds the vectors once a model is available."
)


class EngineFactory:
    """Makes a search engine for each state of the index. Thread-safe.

    Args:
        embedding: Returns the engine for queries, and waits while it loads; raises ModelError.
        reader: Runs the keyword arm of searches.
        is_gone: As for ``SearchEngine``.
    """

    def __init__(
        self,
        embedding: Callable[[], EmbeddingEngine],
        reader: Executor,
        is_gone: Callable[[Entry], bool] | None,
    ) -> None:
        self._embedding = embedding
        self._reader = reader
        self._is_gone = is_gone
        self._item_cache = ItemCache()

    def engine(
        self,
        keywords: KeywordIndex,
        collection: Collection | None,
        version: int,
        sources: KnownSources,
        degraded: Sequence[str],
    ) -> SearchEngine:
        """The search engine for a keyword index and its vectors; see ``SearchEngine``."""
        return SearchEngine(
            keywords=keywords,
            collection=collection,
            embedding=partial(self.embedding, collection),
            reader=self._reader,
            degraded=degraded,
            precedence=sources.names,
            stale=sources.stale,
            notices=sources.every_notice(len(keywords)),
            version=version,
            item_cache=self._item_cache,
            is_gone=self._is_gone,
        )

    def embedding(self, collection: Collection | None) -> EmbeddingEngine:
        """The engine that embeds queries for a collection; without a collection, any engine.

        Raises:
            ModelError: No model is available, or the vectors were made with a different one.
        """
        if collection and not has_vectors(collection):
            raise ModelError(NO_VECTORS)
        slug = model_slug(collection.name) if collection else None
        engine = self._embedding()
        if slug and engine.model.slug != slug:
            raise ModelError(
                f"The index holds vectors of {slug}, but queries are embedded with "
                f"{engine.model.slug}: run `repertory index`, or give all parts of the server the "
                "same model."
            )
        return engine


def has_vectors(collection: Collection) -> bool:
    """Whether a collection was written with a model."""
    return model_slug(collection.name) != WORDS_MODEL.slug
