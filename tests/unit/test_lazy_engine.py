"""An embedding engine is loaded in the background and retried after a failure."""

import threading

import pytest

from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.lazy import RETRY_INTERVAL_S, LazyEngine
from repertory.embedding.words import WordsEngine
from repertory.errors import ModelError


def test_only_the_first_attempt_to_load_blocks_a_search() -> None:
    """During a retry, which may be slow, searches continue without the model."""
    now = 0.0
    gate = threading.Event()
    loaded = WordsEngine("a test")
    failures = [ModelError("There is no model.")]

    def load() -> EmbeddingEngine:
        if failures:
            raise failures.pop()
        gate.wait()
        return loaded

    lazy = LazyEngine(load, clock=lambda: now)
    for _ in range(2):
        with pytest.raises(ModelError, match="no model"):
            lazy.get()
    now += RETRY_INTERVAL_S
    with pytest.raises(ModelError, match="no model"):
        lazy.get()
    gate.set()
    assert lazy.begin().result() is loaded
    assert lazy.get() is loaded


def test_the_pause_before_a_retry_begins_when_the_attempt_fails() -> None:
    """An attempt that took longer than the pause is not repeated at once."""
    now = 0.0
    attempts: list[float] = []
    begun = threading.Event()

    def load() -> EmbeddingEngine:
        nonlocal now
        attempts.append(now)
        begun.wait()
        now += 2 * RETRY_INTERVAL_S
        raise ModelError("It cannot be reached.")

    lazy = LazyEngine(load, clock=lambda: now)
    first = lazy.begin()
    begun.set()
    failures = [first.exception(), lazy.begin().exception(), lazy.begin().exception()]
    assert attempts == [0.0]
    assert isinstance(failures[0], ModelError)
    now += RETRY_INTERVAL_S
    assert isinstance(lazy.begin().exception(), ModelError)
    assert len(attempts) == 2
