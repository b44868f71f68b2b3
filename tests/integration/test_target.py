"""The target of a command: the server of its directory, or the index in its own process."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from repertory.errors import StoreBusyError
from repertory.index.edge import EdgeStore
from repertory.index.lock import StoreLock
from repertory.local.one_shot import Repertory
from repertory.remote import running
from repertory.remote.client import Client
from repertory.remote.requests import RemoteServer
from repertory.search.query import Query
from repertory_admin.commands import index
from repertory_admin.progress import Bars
from repertory_admin.target import Target, target
from tests.support.builders import write_shop
from tests.support.query_service import settings_of

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_server_that_takes_the_index_after_the_lookup_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_indexed: bool
) -> None:
    """The command looked for a server too early; if there is still none, the index is busy."""
    for name in ("LOCK_TIMEOUT_S", "INDEX_LOCK_TIMEOUT_S"):
        monkeypatch.setattr(f"repertory.local.one_shot.{name}", 0.0)
    project = write_shop(tmp_path / "project")
    settings = settings_of(project)
    with Repertory(settings, project) as repertory:
        collection = repertory.index().stats.collection
    if not is_indexed:
        for file in (tmp_path / "data" / "aliases").iterdir():
            file.unlink()
    target = Target(settings, project, None)
    server = cast("Client", object())
    with EdgeStore(tmp_path / "data").open(collection):
        if not is_indexed:
            monkeypatch.setattr(running, "client", lambda *_: None)
            with pytest.raises(StoreBusyError), target.open(Bars()):
                pass
        monkeypatch.setattr(running, "client", lambda *_: server)
        with target.open(Bars(), embeds=True) as backend:
            assert backend is server


def test_index_is_left_to_a_server_that_takes_the_index_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has what the command has indexed, and indexes the rest; without it, the index is busy."""
    monkeypatch.setattr("repertory.local.one_shot.INDEX_LOCK_TIMEOUT_S", 0.0)
    project = write_shop(tmp_path / "project")
    settings = settings_of(project)
    with Repertory(settings, project) as repertory:
        collection = repertory.index().stats.collection
    (project / "README.md").write_text("# Shop\n\nAnother one.\n")
    monkeypatch.setattr(index, "target_of", lambda _: Target(settings, project, None))
    server = SimpleNamespace(remote=SimpleNamespace(url="http://here"), stats=lambda: None)
    with EdgeStore(tmp_path / "data").open(collection):
        monkeypatch.setattr(running, "client", lambda *_: None)
        with pytest.raises(StoreBusyError):
            index.index({})
        monkeypatch.setattr(running, "client", lambda *_: server)
        index.index({})
    assert capsys.readouterr().out.startswith("The server at http://here watches the sources")


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_silent_server_delays_a_command_by_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_changed: bool
) -> None:
    """Its stopped process holds the index, so keywords answer alone."""
    project = write_shop(tmp_path / "project")
    settings = settings_of(project)
    with Repertory(settings, project) as repertory:
        collection = repertory.index().stats.collection
    if is_changed:
        (project / "README.md").write_text("# Shop\n\nAnother one.\n")
    running.announce(settings, project, "http://127.0.0.1:1", "token")
    (note,) = (tmp_path / "data" / "servers").glob("*.json")
    os.utime(note, (0, 0))
    locks, asked = list[float](), list[float]()
    take = StoreLock.__init__

    def taken(lock: StoreLock, path: Path, timeout: float) -> None:
        locks.append(timeout)
        take(lock, path, 0.0)

    def is_silent(_: RemoteServer, timeout_s: float) -> bool:
        asked.append(timeout_s)
        time.sleep(1.0)  # until the index is checked again
        return False

    with EdgeStore(tmp_path / "data").open(collection):
        monkeypatch.setattr(StoreLock, "__init__", taken)
        monkeypatch.setattr(RemoteServer, "is_alive", is_silent)
        with target(settings, project).open(Bars(), embeds=True) as backend:
            answer = backend.search(Query(text="rotate keys"))
    assert answer.degraded
    assert len(locks) == 1
    assert sum(locks + asked) < 7
