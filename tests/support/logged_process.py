"""A process that logs JSON lines and that a test can kill and restart."""

import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

from tests.support.forked import Forked
from tests.support.waiting import TIMEOUT_S, until


class LoggedProcess:
    """A `repertory` command and its children; its output is appended to a log.

    Args:
        arguments: The arguments of the command.
        folder: The working directory.
        log: The file for its output.
        environment: The environment variables.
        program: The program to run with the arguments. If empty, the command is a fork, which
            starts faster but has the modules of all commands in memory.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        log: Path,
        environment: Mapping[str, str],
        *,
        program: Sequence[str] = (),
    ) -> None:
        self.log = log
        self._program = program
        self._arguments = arguments
        self._folder = folder
        self._environment = environment
        self._process: Forked | Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; its output is appended to the existing log."""
        self.log.touch()
        self._process = self._begun()

    def _begun(self) -> Forked | Popen[bytes]:
        """Start the process in a new session."""
        if not self._program:
            return Forked(
                self._arguments,
                self._folder,
                self._environment,
                out=self.log,
                err=self.log,
                is_leader=True,
            )
        with self.log.open("ab") as log:
            return Popen(
                [*self._program, *self._arguments],
                cwd=self._folder,
                env=self._environment,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Send SIGKILL to the process and its children, unless it has ended."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()  # in case it does not lead its process group yet
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Kill the process and start it again."""
        self.kill()
        self.start()

    def terminate(self) -> int:
        """Send SIGTERM to the process, and return its exit code."""
        assert self._process
        self._process.terminate()
        return self._process.wait(TIMEOUT_S)

    def interrupt(self) -> int:
        """Send SIGINT to the process group, as Ctrl-C does, and return the exit code."""
        os.killpg(self.pid, signal.SIGINT)
        assert self._process
        return self._process.wait(TIMEOUT_S)

    @property
    def pid(self) -> int:
        """The id of the process, which is also the id of its process group."""
        assert self._process
        return self._process.pid

    def events(self, event: str) -> list[dict[str, Any]]:
        """The log entries of an event; lines that are not JSON objects are ignored."""
        found = []
        for line in self.log.read_text("utf-8", "replace").splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("event") == event:
                    found.append(entry)
        return found

    def wait_for(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until an event was logged at least ``count`` times, and return its entries."""
        try:
            until(lambda: len(self.events(event)) >= count, self._process)
        except AssertionError as exc:
            exc.add_note(self.log.read_text("utf-8", "replace"))
            raise
        return self.events(event)
