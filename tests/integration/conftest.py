"""Fixtures of several integration tests."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from repertory.embedding.load import load_engine
from repertory.sources.mcp import client
from tests.support.builders import Folder
from tests.support.steered_team import Steer, SteeredTeam
from tests.support.watches import watches  # noqa: F401  # a fixture


@pytest.fixture
def newer_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask MCP servers in the newer protocol only."""
    monkeypatch.setattr(client, "_attempts", lambda server: [(server.transport, "auto")])


@pytest.fixture
def own_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the model for this test alone, which leaves its files in the data directory."""
    monkeypatch.setattr("repertory.compose.load_engine", load_engine)


@pytest.fixture
def steer(tmp_path: Path) -> Iterator[Steer]:
    """Makes teams of folders, which have indexed nothing yet, and closes them at the end."""
    numbers = itertools.count()
    with ExitStack() as teams:

        def make(*folders: Folder) -> SteeredTeam:
            root = tmp_path / f"team-{next(numbers)}"
            return teams.enter_context(closing(SteeredTeam(root, *folders)))

        yield make
