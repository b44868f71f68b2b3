"""A search by a caller who may not see all sources, compared with one who may see all."""

import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path

import numpy as np
from typing_extensions import override

from benchmarks.indexing import ITEMS
from benchmarks.measure import Figure, medians
from benchmarks.texts import descriptions, questions
from repertory.catalogue.item import Item, Kind, item_key, point_id
from repertory.embedding.engine import EmbeddingEngine, Vectors, unit
from repertory.embedding.models import Model
from repertory.index.edge import EdgeStore
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Point
from repertory.live_search.known_sources import KnownSources
from repertory.live_search.visible_subsets import subset_of
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from repertory.watch_status import SourceState, WatchStatus

SOURCES = 10  # sources, one of which is hidden
DIMENSION = 384
ROUNDS = 100


class _Directions(EmbeddingEngine):
    """Embeds each text as a random direction, without a model."""

    model = Model(id="bench/random", slug="random", dimension=DIMENSION, max_tokens=512)
    device = "cpu"
    batch = 128

    @override
    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        seeds = [np.random.default_rng(zlib.crc32(text.encode())) for text in texts]
        return unit(np.array([one.standard_normal(DIMENSION) for one in seeds], np.float32))

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_texts(texts)


def run(folder: Path) -> list[Figure]:
    """Search ten sources, and a subset of nine."""
    engine = _Directions()
    items = [
        Item(id=name, kind=Kind.TOOL, name=name, source=f"s{at % SOURCES}", description=text)
        for at, (name, text) in enumerate(descriptions(ITEMS))
    ]
    asked = questions(ROUNDS)
    store = EdgeStore(folder / "visibility")
    with store.create("c", DIMENSION) as collection, ThreadPoolExecutor(1) as reader:
        vectors = engine.embed_texts([item.description for item in items])
        collection.upsert([_point(item, one) for item, one in zip(items, vectors, strict=True)])
        collection.optimize()
        keywords = KeywordIndex.empty().updated((), items)
        keywords.prepare()
        whole = SearchEngine(
            keywords=keywords, collection=collection, embedding=lambda: engine, reader=reader
        )
        names = [f"s{at}" for at in range(SOURCES)]
        sources = KnownSources().after(WatchStatus(sources=[_state(name) for name in names]), "")
        all_of_them, some = frozenset(names), frozenset(names[1:])
        subset, full = subset_of(whole, sources, some), subset_of(whole, sources, all_of_them)
        texts, others, thirds = cycle(asked), cycle(asked), cycle(asked)
        works: list[Callable[[], object]] = [
            lambda: subset.search(Query(text=next(texts))),
            lambda: full.search(Query(text=next(others))),
            lambda: whole.search(Query(text=next(thirds))),
        ]
        seen, everything, plain = medians(works, ROUNDS)
        made, built = medians(
            [
                lambda: subset_of(whole, sources, some),
                lambda: KeywordIndex.empty().updated((), items),
            ],
            3,
        )
    return [
        Figure(
            name=f"search at {ITEMS:,} items of which a tenth is hidden",
            ours=seen * 1e3,
            other=plain * 1e3,
            against="the same where nothing is hidden",
            unit="ms",
            target=3.0,
        ),
        Figure(
            name=f"search at {ITEMS:,} items through a subset that hides nothing",
            ours=everything * 1e3,
            other=plain * 1e3,
            against="the same without a subset",
            unit="ms",
            target=1.25,
        ),
        Figure(
            name=f"subset of {ITEMS:,} items after a change",
            ours=made * 1e3,
            other=built * 1e3,
            against="building the keyword index from scratch",
            unit="ms",
            target=0.1,
        ),
    ]


def _state(name: str) -> SourceState:
    return SourceState(name=name, type="tools", location="", items=0, stale=0, error="", seen=0.0)


def _point(item: Item, vector: Vectors) -> Point:
    return Point(
        id=point_id(item_key(item.id)),
        vector=vector,
        item=item.id,
        kind=item.kind,
        source=item.source,
        content_hash="",
        metadata_hash="",
        revision=1,
        record={},
    )
