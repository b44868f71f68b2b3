"""A team's worker in separate processes that a test may kill."""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.support.logged_process import LoggedProcess

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


class WorkerProcess(LoggedProcess):
    """A worker with one child process; a context manager that starts it.

    Args:
        folder: Its working directory and log.
        settings: Environment variables.
        visibility: Seconds until an unacknowledged message is delivered again.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, str], *, visibility: float = 1_800
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", _RUN, str(visibility)]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", **settings}
        super().__init__(command, folder, folder / "worker.log", environment)

    def __enter__(self) -> Self:
        self.start()
        self.wait_for("worker_ready")
        self.wait_for("model_loaded")
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill_child(self) -> None:
        """End the process that runs the jobs with kill -9."""
        os.kill(self.events("model_loaded")[-1]["process"], signal.SIGKILL)
