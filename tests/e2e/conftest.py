"""A home directory, a data directory, and projects to index."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command_line import PROJECT_ITEMS, Cli, add_skill, make_project
from tests.support.mcp_servers import WEATHER
from tests.support.server_process import Serve
from tests.support.waiting import until


@pytest.fixture(scope="session", autouse=True)
def _heeded_hangup() -> Iterator[None]:
    """Let child processes react to SIGHUP, also if the tests run under ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def _new_user(root: Path) -> Cli:
    (root / "home").mkdir()
    return Cli(root / "home", root / "data")


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """The command line with one home and one data directory for the whole session.

    Folders keep their indexes apart; the model is prepared only once.
    """
    return _new_user(tmp_path_factory.mktemp("user"))


@pytest.fixture(scope="session")
def indexed(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An indexed project that tests only read."""
    folder = make_project(tmp_path_factory.mktemp("indexed") / "project")
    done = cli.run(folder, "index")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """The command line of a user with their own data directory, for one module."""
    return _new_user(tmp_path_factory.mktemp("user"))


@pytest.fixture
def own(tmp_path: Path) -> Cli:
    """The command line of a new user, for one test."""
    return _new_user(tmp_path)


@pytest.fixture(scope="module")
def served(user: Cli, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project with a running server that has indexed all of it."""
    folder = make_project(tmp_path_factory.mktemp("served") / "project")
    with Serve(user, folder, folder.parent / "log") as server:
        until(lambda: server.get("/v1/items")["total"] == PROJECT_ITEMS)
        yield folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that is not indexed yet."""
    return make_project(tmp_path / "project")


@pytest.fixture
def broken_skill(project: Path) -> Path:
    """A skill file in the project that cannot be read."""
    return add_skill(project, "broken", "---\nname: broken\n---\n")


@pytest.fixture
def mcp_config(project: Path) -> Path:
    """An MCP configuration in the project with one real, untrusted server."""
    file = project / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"weather": WEATHER}}), "utf-8")
    return file


@pytest.fixture
def labelled_set(tmp_path: Path) -> Callable[[str], Path]:
    """Create a labelled set of two tools and one query with the given right answer."""

    def make(right: str) -> Path:
        folder = tmp_path / "labelled"
        folder.mkdir()
        tools = {"send_mail": "Send an e-mail.", "resize_image": "Change the size of a picture."}
        files: dict[str, list[dict[str, object]]] = {
            "corpus": [
                {"id": name, "kind": "tool", "name": name, "description": text}
                for name, text in tools.items()
            ],
            "queries": [{"id": "q1", "text": "make a photo smaller"}],
            "qrels": [{"query_id": "q1", "item_id": right, "grade": 1}],
        }
        for name, rows in files.items():
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{name}.jsonl").write_text(text, "utf-8")
        return folder

    return make
