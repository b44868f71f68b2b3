"""Share one engine of the packaged model between all tests of a process.

Loading it takes half a second.
"""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from repertory import compose
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.load import load_engine
from tests.support.query_service import MODEL


@pytest.fixture(scope="session", autouse=True)
def shared_engines() -> Iterator[None]:
    """Load the packaged model only once; other models are loaded on every call."""
    engines: dict[bool, EmbeddingEngine] = {}
    loading = threading.Lock()

    def shared(model: str | None, *given: Any, **options: Any) -> EmbeddingEngine:  # noqa: ANN401
        if model != MODEL or given[0] == "gpu":
            return load_engine(model, *given, **options)
        only_queries = bool(options.get("queries_only"))
        with loading:
            if only_queries not in engines:
                engines[only_queries] = load_engine(model, *given, **options)
            return engines[only_queries]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compose, "load_engine", shared)
        yield
