"""A sandbox of skill files, embedded or behind a running server, for calls from Python."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

import repertory
from repertory.api import Session
from tests.support.command_line import Cli
from tests.support.query_service import MODEL
from tests.support.server_process import Serve
from tests.support.skill_files import make_library


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """A session with the skill files of a sandbox.

    Attributes:
        session: The session.
        folder: The sandbox.
        url: The server's URL; empty if embedded.
    """

    session: Session
    folder: Path
    url: str = ""


@contextmanager
def open_library(root: Path, face: str) -> Iterator[Library]:
    """Open a new sandbox, not yet indexed: ``embedded`` in this process, or with a ``server``."""
    folder = make_library(root / "project")
    if face == "embedded":
        with closing(repertory.open(folder, data_dir=str(root / "data"), model=MODEL)) as session:
            yield Library(session=session, folder=folder)
        return
    (root / "home").mkdir()
    own = Cli(root / "home", root / "data")
    with Serve(own, folder, root / "log", "--model", MODEL) as server:
        session = repertory.connect(server.url, server.token)
        yield Library(session=session, folder=folder, url=server.url)
