"""A search while the collection of another model replaces the searched one."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from typing_extensions import override

from repertory.catalogue.item import item_key, point_id
from repertory.coordination.ports import in_process
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import BGE_SMALL, MINILM, Calibration, Model
from repertory.index.edge import EdgeStore
from repertory.index.vectors import Point
from repertory.indexing.collection_names import collection_name
from repertory.live_search.live import LiveSearch
from repertory.search.answer import Answer, Mode
from repertory.search.query import Query
from repertory.values import NAMESPACE
from tests.support.builders import skill
from tests.support.keyword_search import reader

ITEMS = [skill("rotate-keys", "Change credentials"), skill("bake-bread", "Make dough rise")]
# The axis of each item's vector per model. The models have opposite axes, so that a mix is visible.
PLACES = {MINILM.slug: (0, 1), BGE_SMALL.slug: (1, 0)}


def unit_vector(place: int) -> Vectors:
    """The unit vector of an axis."""
    vector: Vectors = np.eye(1, MINILM.dimension, place, dtype=np.float32)[0]
    return vector


class FirstMeant(EmbeddingEngine):
    """An engine of some model for which every query means the first item."""

    device = "cpu"
    batch = 8

    def __init__(self, model: Model) -> None:
        self.model = msgspec.structs.replace(model, calibration=Calibration())

    @override
    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        return np.stack([unit_vector(PLACES[self.model.slug][0]) for _ in texts])

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_texts(texts)


def names_of(model: Model) -> str:
    """The name of a model's collection."""
    return collection_name(NAMESPACE, "a" * 16, model.slug, 1)


@pytest.fixture
def store(tmp_path: Path) -> EdgeStore:
    """A collection of each model with the same items; the first model's is active."""
    made = EdgeStore(tmp_path)
    for model in (MINILM, BGE_SMALL):
        with made.create(names_of(model), model.dimension) as collection:
            collection.upsert(
                [
                    Point(
                        id=point_id(item_key(item.id)),
                        vector=unit_vector(place),
                        item=item.id,
                        kind=item.kind,
                        source=item.source,
                        content_hash=item.content_hash(),
                        metadata_hash=item.metadata_hash(),
                        revision=1,
                        record=msgspec.to_builtins(item),
                    )
                    for item, place in zip(ITEMS, PLACES[model.slug], strict=True)
                ]
            )
    made.set_alias(NAMESPACE, names_of(MINILM))
    return made


def live_search(store: EdgeStore, folder: Path, model: Model) -> LiveSearch:
    """A search that always embeds queries with the same model."""
    return LiveSearch(
        store=store,
        coordination=in_process(folder),
        active=NAMESPACE,
        embedding=lambda: FirstMeant(model),
        reader=reader(),
    )


def found(live: LiveSearch) -> Answer:
    """The answer to a query that shares no word with the items."""
    return live.engine.search(Query(text="secret renewal", threshold=0.0))


@pytest.mark.parametrize("model", [MINILM, BGE_SMALL])
def test_a_query_is_never_compared_with_vectors_of_another_model(
    store: EdgeStore, tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the matching vectors are missing, keyword search answers."""
    live = live_search(store, tmp_path, model)
    answers: list[Answer] = []

    def during(switch: Callable[[], None] = live._replace_engine) -> None:
        if live._subsets:
            answers.append(found(live))
        switch()

    monkeypatch.setattr(live, "_replace_engine", during)
    live.refresh()
    answers.append(found(live))
    store.set_alias(NAMESPACE, names_of(BGE_SMALL))
    live.refresh()
    answers.append(found(live))
    assert len(answers) > 2
    for answer in answers:
        if answer.mode is Mode.HYBRID:
            assert answer.hits[0].name == "rotate-keys"
        else:
            assert "queries are embedded with" in answer.degraded
    assert {answer.mode for answer in answers} == {Mode.HYBRID, Mode.KEYWORD}
    live.close()
