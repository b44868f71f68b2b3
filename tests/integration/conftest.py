"""Fixtures of several integration tests."""

import pytest

from repertory.embedding.load import load_engine
from repertory.sources.mcp import client
from tests.support.watches import watches  # noqa: F401  # a fixture


@pytest.fixture
def newer_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask MCP servers in the newer protocol only."""
    monkeypatch.setattr(client, "_attempts", lambda server: [(server.transport, "auto")])


@pytest.fixture
def own_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the model for this test alone, which leaves its files in the data directory."""
    monkeypatch.setattr("repertory.compose.load_engine", load_engine)
