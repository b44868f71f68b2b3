"""A worker as a team runs it: processes of its own, which a test may kill."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

PATIENCE = 60.0  # seconds; only a hanging worker takes as long

# The visibility timeout is half an hour; a test that waits for it makes it shorter.
_RUN = """
import sys
from pathlib import Path
from repertory import logs
from repertory.indexing import celery_queue
from repertory.settings import load
from repertory_worker.app import run
celery_queue.VISIBILITY_TIMEOUT_S = float(sys.argv[1])
logs.begin()
run(load({}, Path.cwd()))
"""


class WorkerProcess:
    """A worker with one child process; a context manager, which starts it and waits for it.

    Args:
        folder: Where its log is, and where it runs.
        settings: Environment variables.
        visibility: Seconds after which what was not acknowledged is delivered again.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, str], *, visibility: float = 1_800
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "worker.log"
        self._folder = folder
        self._environment = dict(os.environ) | {"HF_HUB_OFFLINE": "1"} | dict(settings)
        self._command = [sys.executable, "-c", _RUN, str(visibility)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        self.wait_for("worker_ready")
        self.wait_for("model_loaded")
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it and its child with kill -9; one that has ended is passed over."""
        assert self._process
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def kill_child(self) -> None:
        """End the process that does the jobs with kill -9."""
        os.kill(self.events("model_loaded")[-1]["process"], signal.SIGKILL)

    def terminate(self) -> int:
        """Ask it to end, and return the exit code with which it does."""
        assert self._process
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def events(self, event: str) -> list[dict[str, Any]]:
        """What it has logged under a name; what libraries in C write to stderr is passed over."""
        lines = self._log.read_text("utf-8").splitlines(keepends=True)
        logged = [json.loads(line) for line in lines if line.startswith("{") and line[-1] == "\n"]
        return [line for line in logged if line["event"] == event]

    def wait_for(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until something was logged so often."""
        deadline = time.monotonic() + PATIENCE
        while len(found := self.events(event)) < count:
            assert self._process
            running = self._process.poll() is None and time.monotonic() < deadline
            assert running, f"no {event} in\n{self._log.read_text('utf-8')}"
            time.sleep(0.02)
        return found
