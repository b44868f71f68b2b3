"""A sandbox of skill files, embedded and behind a running server, each asked as Python does."""

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


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A repertory to ask.

    Attributes:
        session: It.
        folder: The folder that is its sandbox.
        url: Where its server is; empty where there is none.
    """

    session: Session
    folder: Path
    url: str = ""


@contextmanager
def asked(root: Path, face: str) -> Iterator[Asked]:
    """A repertory of a library, ``embedded`` or behind a ``server``, with nothing of it written."""
    folder = make_library(root / "project")
    if face == "embedded":
        with closing(repertory.open(folder, data_dir=str(root / "data"), model=MODEL)) as session:
            yield Asked(session=session, folder=folder)
        return
    (root / "home").mkdir()
    with Serve(Cli(root / "home", root / "data"), folder, root / "log") as server:
        yield Asked(session=repertory.connect(server.url), folder=folder, url=server.url)
