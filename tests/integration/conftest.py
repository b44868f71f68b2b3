"""Fixtures of several integration tests."""

import pytest

from repertory.sources.mcp import client
from tests.support.watches import watches  # noqa: F401  # a fixture


@pytest.fixture
def newer_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask MCP servers in the newer protocol only."""
    monkeypatch.setattr(client, "_ways", lambda server: [(server.transport, "auto")])
