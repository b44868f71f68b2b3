"""A team's worker in separate processes that a test can kill."""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.support.logged_process import LoggedProcess

# Tests that wait for a lease to expire shorten it. A changed embedding recipe stands for another
# release.
_RUN = """
import sys
from pathlib import Path
from repertory.catalogue import views
views.RECIPE += int(sys.argv[2])
from repertory.system import logs
from repertory.indexing import celery_queue
celery_queue.LEASE_S = float(sys.argv[1])
celery_queue.RESTORE_INTERVAL_S = min(1.0, celery_queue.LEASE_S)
from repertory.settings import load
from repertory_worker.app import run
logs.begin()
run(load({}, Path.cwd()))
"""


class WorkerProcess(LoggedProcess):
    """A worker with one child process; entering the context starts it.

    Args:
        folder: The directory of its work and its log.
        settings: Environment variables.
        lease: Seconds until the message of a dead worker is delivered again.
        recipe: The number to add to the version of the embedding recipe.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, str], *, lease: float = 20.0, recipe: int = 0
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", **settings}
        given = (str(lease), str(recipe))
        program = (sys.executable, "-c", _RUN)
        super().__init__(given, folder, folder / "worker.log", environment, program=program)

    def __enter__(self) -> Self:
        self.start()
        self.wait_for("worker_ready")
        self.wait_for("model_loaded")
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill_child(self) -> None:
        """Send SIGKILL to the child process, which runs the jobs."""
        os.kill(self.events("model_loaded")[-1]["process"], signal.SIGKILL)
