"""Queries that wait at the same time are embedded in one run."""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repertory.embedding import batching
from repertory.embedding.batching import BatchingEngine
from repertory.embedding.engine import Vectors
from repertory.embedding.model_files import Format
from repertory.embedding.onnx import OnnxEngine
from repertory.embedding.weights import resolve
from repertory.errors import ModelError
from tests.support.model_folders import write_model

QUERIES = [f"w{number} w{number + 7}" for number in range(12)]


class GatedEngine(OnnxEngine):
    """An engine whose runs wait for a gate, and can be made to fail."""

    runs: list[int]
    gate: threading.Semaphore
    began: threading.Semaphore
    failing = False

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries together, once the gate is open."""
        self.runs.append(len(texts))
        self.began.release()
        self.gate.acquire()
        if self.failing:
            raise ModelError("it failed")
        return super().embed_queries(texts)


@pytest.fixture
def engine(tmp_path: Path) -> GatedEngine:
    """An engine with a closed gate."""
    folder = write_model(tmp_path / "encoder")
    gated = GatedEngine(resolve(str(folder), Format.ONNX, tmp_path / "data"), tmp_path / "cache")
    gated.runs = []
    gated.gate, gated.began = threading.Semaphore(0), threading.Semaphore(0)
    return gated


@pytest.fixture
def asking() -> Iterator[ThreadPoolExecutor]:
    """Threads that send queries."""
    with ThreadPoolExecutor(len(QUERIES)) as pool:
        yield pool


def ask(
    together: BatchingEngine, queries: Sequence[str], pool: ThreadPoolExecutor
) -> list[Future[Vectors]]:
    """Send each query on its own thread, and return when all of them wait."""
    expected = len(vars(together)["_waiting"]) + len(queries)
    asked = [pool.submit(together.embed_query, query) for query in queries]
    while len(vars(together)["_waiting"]) < expected:
        time.sleep(0.001)
    return asked


def test_queries_that_wait_during_a_run_form_the_next_run(
    engine: GatedEngine, asking: ThreadPoolExecutor
) -> None:
    """Each caller gets the vector of its own query, as if it had been alone."""
    together = BatchingEngine(engine)
    first = asking.submit(together.embed_query, QUERIES[0])
    engine.began.acquire()
    others = ask(together, QUERIES[1:], asking)
    engine.gate.release(2)
    vectors = [asked.result() for asked in (first, *others)]
    assert engine.runs == [1, len(QUERIES) - 1]
    engine.gate.release()
    assert np.allclose(vectors, OnnxEngine.embed_queries(engine, QUERIES), atol=1e-5)


def test_a_single_query_does_not_wait(engine: GatedEngine) -> None:
    """A query without others is embedded on the calling thread."""
    engine.gate.release(3)
    together = BatchingEngine(engine)
    for query in QUERIES[:3]:
        assert together.embed_query(query).shape == (engine.model.dimension,)
    assert engine.runs == [1, 1, 1]
    assert (together.model, together.device) == (engine.model, "cpu")


def test_the_allowed_number_of_runs_is_concurrent(
    engine: GatedEngine, asking: ThreadPoolExecutor
) -> None:
    """Two runs begin before either has ended; a third query waits."""
    together = BatchingEngine(engine, runs=2)
    two = [asking.submit(together.embed_query, query) for query in QUERIES[:2]]
    engine.began.acquire()
    engine.began.acquire()
    third = ask(together, QUERIES[2:3], asking)
    assert engine.runs == [1, 1]
    engine.gate.release(3)
    assert all(asked.result().size for asked in (*two, *third))


def test_a_run_is_bounded(
    engine: GatedEngine, asking: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries beyond the maximum wait for the next run."""
    monkeypatch.setattr(batching, "MAX_BATCH", 4)
    together = BatchingEngine(engine)
    first = asking.submit(together.embed_query, QUERIES[0])
    engine.began.acquire()
    others = ask(together, QUERIES[1:11], asking)
    engine.gate.release(10)
    assert all(asked.result().size for asked in (first, *others))
    assert engine.runs == [1, 4, 4, 2]


def test_a_failed_run_raises_for_all_and_the_next_continues(
    engine: GatedEngine, asking: ThreadPoolExecutor
) -> None:
    """No caller is left waiting."""
    together = BatchingEngine(engine)
    engine.failing = True
    first = asking.submit(together.embed_query, QUERIES[0])
    engine.began.acquire()
    others = ask(together, QUERIES[1:5], asking)
    engine.gate.release(2)
    for asked in (first, *others):
        with pytest.raises(ModelError, match="it failed"):
            asked.result()
    engine.failing = False
    engine.gate.release()
    assert together.embed_query(QUERIES[0]).size


@pytest.mark.parametrize("is_its_turn", [False, True])
def test_an_interrupted_query_blocks_no_later_query(
    engine: GatedEngine,
    asking: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    is_its_turn: bool,
) -> None:
    """Ctrl-C arrives while the query waits, or just as its turn comes."""

    class Interrupted(Future[Any]):
        asked = False

        def result(self, timeout: float | None = None) -> object:
            if not self.asked and is_its_turn:
                engine.gate.release()
                super().result(10)
            if not self.asked:
                self.asked = True
                raise KeyboardInterrupt
            return super().result(timeout)

    together = BatchingEngine(engine)
    first = asking.submit(together.embed_query, QUERIES[0])
    engine.began.acquire()
    with monkeypatch.context() as patch:
        patch.setattr(batching, "MAX_BATCH", 1)
        patch.setattr(batching, "Future", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            together.embed_query(QUERIES[1])
    engine.gate.release(5)
    assert first.result(10).size
    assert asking.submit(together.embed_query, QUERIES[2]).result(10).size
