"""A search while another model's collection takes the place of the one that is searched."""

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
from repertory.search.answer import Answer, Mode
from repertory.search.live import LiveSearch
from repertory.search.query import Query
from repertory.values import NAMESPACE
from tests.support.builders import skill
from tests.support.keyword_search import reader

ITEMS = [skill("rotate-keys", "Change credentials"), skill("bake-bread", "Make dough rise")]
# Where each model has the meaning of the items: what one calls the first is the other's second.
PLACES = {MINILM.slug: (0, 1), BGE_SMALL.slug: (1, 0)}


def unit_vector(place: int) -> Vectors:
    """The vector of a meaning."""
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
    """The name of the collection of a model."""
    return collection_name(NAMESPACE, "a" * 16, model.slug, 1)


@pytest.fixture
def store(tmp_path: Path) -> EdgeStore:
    """A collection of each model, with the same items; that of the first is active."""
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
    """A search whose queries are embedded by one model all the time."""
    return LiveSearch(
        store=store,
        coordination=in_process(folder),
        active=NAMESPACE,
        embedding=lambda: FirstMeant(model),
        reader=reader(),
    )


def found(live: LiveSearch) -> Answer:
    """What is found for a query without a word of the items."""
    return live.engine.search(Query(text="secret renewal", threshold=0.0))


@pytest.mark.parametrize("model", [MINILM, BGE_SMALL])
def test_a_model_is_never_asked_about_the_vectors_of_another(
    store: EdgeStore, tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even while the new collection is opened; without its vectors the words answer."""
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
