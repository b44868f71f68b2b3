"""What a command uses: the server of its directory, or the index in its own process."""

from pathlib import Path
from typing import cast

import pytest

from repertory import running
from repertory.client import Client
from repertory.errors import StoreBusyError
from repertory.index.edge import EdgeStore
from repertory.one_shot import Repertory
from repertory_admin.backend import Target
from repertory_admin.progress import Bars
from tests.support.builders import write_shop
from tests.support.query_service import settings_of


@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_server_that_takes_the_index_meanwhile_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_indexed: bool
) -> None:
    """The command looked for a server a moment too early; without one, the index stays busy."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("LOCK_TIMEOUT_S", "INDEX_LOCK_TIMEOUT_S"):
        monkeypatch.setattr(f"repertory.one_shot.{name}", 0.0)
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
