"""``repertory serve`` as a process of its own."""

import hashlib
import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

from tests.support.command_line import COMMAND, Cli

PATIENCE = 60.0  # seconds; only a hanging server takes as long


class Serve:
    """A server of one folder; a context manager, which waits until it can be searched.

    Attributes:
        url: Where it answers.
        log: What it writes to stderr.
    """

    def __init__(self, cli: Cli, folder: Path, log: Path, *arguments: str) -> None:
        self.log = log
        self._cli = cli
        self._command = [*COMMAND, "serve", "--port", "0", *arguments]
        self._folder = folder
        self._environment = cli.environment

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        try:
            until(self._is_ready, self.process)
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def get(self, target: str) -> Any:  # noqa: ANN401 - whatever it is
        """What it answers at an address."""
        with urlopen(self.url + target, timeout=PATIENCE) as response:
            return json.load(response)

    def end(self, number: signal.Signals) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def _is_ready(self) -> bool:
        try:
            note = json.loads(note_of(self._cli, self._folder).read_bytes())
            self.url = note["url"]
            # The note may be one that another server left behind.
            return bool(note["pid"] == self.process.pid and self.get("/readyz")["ready"])
        except (OSError, ValueError):  # not yet
            return False

    def _kill(self) -> None:
        self.process.kill()
        self.process.wait()


def note_of(cli: Cli, folder: Path) -> Path:
    """Where the server of a folder leaves its note."""
    data = Path(cli.environment["REPERTORY_DATA_DIR"])
    key = hashlib.sha256(json.dumps(str(folder)).encode()).hexdigest()[:16]
    return data / "servers" / f"{key}.json"


def until(is_so: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until something is so, as long as a process runs."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None
        time.sleep(0.05)
