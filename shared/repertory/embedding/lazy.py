"""Loads an engine on a background thread, and retries after an interval if that fails."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from repertory.embedding.engine import EmbeddingEngine

RETRY_INTERVAL_S = 5.0


class LazyEngine:
    """An engine that is loaded in the background. Safe to call from several threads.

    ``get`` waits only for the first attempt. During a retry it raises the last failure at once.

    Args:
        load: Loads the engine, or raises ModelError.
        clock: A clock in seconds.
    """

    def __init__(
        self, load: Callable[[], EmbeddingEngine], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()
        self._loaded: Future[EmbeddingEngine] | None = None
        self._failed: Future[EmbeddingEngine] | None = None
        self._retry_at = 0.0

    def begin(self) -> "Future[EmbeddingEngine]":
        """Start loading, unless it has started already or failed less than the interval ago."""
        with self._lock:
            loaded = self._loaded
            failed = loaded is not None and loaded.done() and loaded.exception() is not None
            if loaded is None or (failed and self._clock() >= self._retry_at):
                self._failed = loaded
                pool = ThreadPoolExecutor(1, thread_name_prefix="load-model")
                self._loaded = loaded = pool.submit(self._attempt)
                pool.shutdown(wait=False)
            return loaded

    def _attempt(self) -> EmbeddingEngine:
        try:
            return self._load()
        finally:
            self._retry_at = self._clock() + RETRY_INTERVAL_S

    def get(self) -> EmbeddingEngine:
        """The engine; waits if it is being loaded for the first time.

        Raises:
            ModelError: The engine could not be loaded.
        """
        loaded = self.begin()
        if self._failed is not None and not loaded.done():
            loaded = self._failed
        return loaded.result()
