"""A search in one process and its keyword arm, compared with the embedding of the query."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path

from benchmarks.indexing import ITEMS, MODEL
from benchmarks.measure import Figure, medians
from benchmarks.texts import descriptions, questions
from repertory.catalogue.item import Item, Kind
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.load import load_engine
from repertory.index.keywords.index import KeywordIndex
from repertory.local.one_shot import Repertory
from repertory.search.query import Query
from repertory.search.semantic_arm import MAX_BY_MEANING
from repertory.settings import load

ROUNDS = 200
LARGE = 100_000
RANKING = 2.0  # maximum milliseconds


def run(folder: Path) -> list[Figure]:
    """Search the index of the indexing benchmark, and separate keyword indexes."""
    engine = load_engine(MODEL, "cpu", folder / "data", queries_only=True)
    return [*searches(folder), *_keyword_arm(engine)]


def searches(folder: Path) -> list[Figure]:
    """Search the index of the indexing benchmark."""
    asked = questions(ROUNDS)
    project = folder / "project"
    settings = load({"data_dir": str(folder / "data"), "model": MODEL}, project, {})
    with Repertory(settings, project) as repertory, ThreadPoolExecutor(1) as reader:
        # The same model session as the searches: with a second one, each would evict the other's
        # weights from the processor's caches.
        engine = repertory.embedding()
        keywords, collection = repertory.engine.keywords, repertory.engine.collection
        assert collection

        def both_arms(text: str) -> None:
            """Run both arms in parallel, as a search does, but without the ranking."""
            reading = reader.submit(lambda: keywords.match(text).best(MAX_BY_MEANING))
            collection.search(engine.embed_query(text), MAX_BY_MEANING)
            reading.result()

        texts, unranked, others = cycle(asked), cycle(asked), cycle(asked)
        repertory.search(Query(text=asked[0]))
        works: list[Callable[[], object]] = [
            lambda: repertory.search(Query(text=next(texts))),
            lambda: both_arms(next(unranked)),
            lambda: engine.embed_query(next(others)),
        ]
        whole, arms, alone = medians(works, ROUNDS)
    return [
        Figure(
            name=f"search at {ITEMS:,} items",
            ours=whole * 1e3,
            other=alone * 1e3,
            against="embedding the query alone",
            unit="ms",
            target=1.4,
        ),
        Figure(
            name=f"ranking at {ITEMS:,} items, beyond embedding and both arms",
            ours=(whole - arms) * 1e3,
            other=RANKING,
            against="a fixed bound",
            unit="ms",
            target=1.0,
        ),
    ]


def _keyword_arm(engine: EmbeddingEngine) -> list[Figure]:
    """Search by words only, and update an index with one item."""
    asked = questions(ROUNDS)
    small, large = _keywords(ITEMS), _keywords(LARGE)
    one, two, three = cycle(asked), cycle(asked), cycle(asked)
    works = [
        lambda: small.match(next(one)).best(MAX_BY_MEANING),
        lambda: large.match(next(two)).best(MAX_BY_MEANING),
        lambda: engine.embed_query(next(three)),
    ]
    at_small, at_large, embedding = medians(works, ROUNDS)
    changed = _items(1)
    one_change, whole = medians([lambda: small.updated((), changed), lambda: _keywords(ITEMS)], 3)
    return [
        Figure(
            name=f"keyword arm at {LARGE:,} items",
            ours=at_large * 1e3,
            other=embedding * 1e3,
            against="embedding the query alone",
            unit="ms",
            target=0.4,
        ),
        Figure(
            name=f"keyword arm at {LARGE:,} items",
            ours=at_large * 1e3,
            other=at_small * 1e3,
            against=f"the same at {ITEMS:,} items",
            unit="ms",
            target=2.0,
        ),
        Figure(
            name=f"keyword index of {ITEMS:,} items after one change",
            ours=one_change * 1e3,
            other=whole * 1e3,
            against="building it from scratch",
            unit="ms",
            target=0.05,
        ),
    ]


def _keywords(count: int) -> KeywordIndex:
    return KeywordIndex.empty().updated((), _items(count))


def _items(count: int) -> list[Item]:
    return [
        Item(id=name, kind=Kind.TOOL, name=name, source="bench", description=text)
        for name, text in descriptions(count)
    ]
