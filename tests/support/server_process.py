"""``repertory serve`` as a separate process."""

import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import msgspec

from repertory.remote.running import Note
from tests.support.command_line import Cli
from tests.support.forked import Forked
from tests.support.query_service import bearer
from tests.support.waiting import TIMEOUT_S, until


class Serve:
    """A server of one folder; entering the context waits until the server is ready.

    Attributes:
        url: The server's URL.
        token: The token of its user.
        log: The file with its stderr output.
    """

    def __init__(self, cli: Cli, folder: Path, log: Path, *arguments: str) -> None:
        self.log = log
        self._cli = cli
        self._arguments = ["serve", "--port", "0", *arguments]
        self._folder = folder
        self._environment = cli.environment

    def __enter__(self) -> Self:
        self.log.write_bytes(b"")
        out = Path(os.devnull)
        self.process = Forked(
            self._arguments, self._folder, self._environment, out=out, err=self.log
        )
        try:
            until(self._is_ready, self.process)
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def wait_for_sources(self) -> None:
        """Wait until each MCP server has failed, awaits trust, or has searchable tools.

        Tools become searchable shortly after they are indexed, since the server polls its index.
        """

        def are_found() -> bool:
            sources = [one for one in self.get("/stats")["sources"] if one["type"] == "mcp"]
            return bool(sources) and all(
                one["error"] or one["awaitsTrust"] or self._offers(one["name"]) for one in sources
            )

        until(are_found, self.process)

    def get(self, target: str) -> Any:  # noqa: ANN401 - JSON
        """The JSON of a GET request for a path and query."""
        with ask(self.url + target, self.token) as response:
            return json.load(response)

    def end(self, number: signal.Signals) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)

    def _offers(self, source: str) -> bool:
        return bool(self.get(f"/v1/items?{urlencode({'source': source})}")["total"])

    def _is_ready(self) -> bool:
        try:
            note = note_of(self._cli, self._folder)
            self.url, self.token = note.url, note.token
            # Another server may have left the note behind.
            return bool(note.pid == self.process.pid and self.get("/readyz")["ready"])
        except (OSError, ValueError):  # not ready yet
            return False

    def _kill(self) -> None:
        self.process.kill()
        self.process.wait()


def ask(request: str | Request, token: str) -> Any:  # noqa: ANN401 - a response
    """Send a request with a token; returns the response, which is a context manager."""
    found = Request(request) if isinstance(request, str) else request
    found.headers.update(bearer(token))
    return urlopen(found, timeout=TIMEOUT_S)


def note_of(cli: Cli, folder: Path) -> Note:
    """The note that the running server of a folder has written."""
    return msgspec.json.decode(note_file(cli, folder).read_bytes(), type=Note)


def note_file(cli: Cli, folder: Path) -> Path:
    """The path of the note that the running server of a folder has written."""
    data = Path(cli.environment["REPERTORY_DATA_DIR"])
    key = hashlib.sha256(json.dumps(str(folder)).encode()).hexdigest()[:16]
    return data / "servers" / f"{key}.json"
