"""One server for the tests of each file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.support.query_service import RunningService, skill


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with nothing in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield Path.home()


@pytest.fixture(scope="module")
def server(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A server of three skills and a document."""
    project = tmp_path_factory.mktemp("served") / "project"
    skill(project, "key-rotation", "Rotate API keys without downtime")
    skill(project, "release-notes", "Write release notes from merged pull requests")
    skill(project, "postmortem", "Write up an incident: timeline, causes, actions")
    (project / "README.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    with RunningService(project) as running:
        running.look()
        yield running


@pytest.fixture
def client(server: RunningService) -> TestClient:
    """A client on the same machine, of a server without keys."""
    return server.client()
