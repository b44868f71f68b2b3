"""Builds a shard's search graph in a separate process, because the engine holds the GIL."""

import contextlib
import ctypes
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from subprocess import DEVNULL

import qdrant_edge as engine

from repertory.errors import StoreError
from repertory.system import python_process

POLL_INTERVAL_S = 0.2
_SIGNAL_OF_PARENT = 1  # ``PR_SET_PDEATHSIG`` of prctl(2)


def build(shard: Path, stopping: threading.Event) -> bool:
    """Build the graph of a closed shard.

    Args:
        shard: Its directory.
        stopping: Set to stop building.

    Returns:
        Whether the graph was built; false if stopped.

    Raises:
        StoreError: The process failed.
    """
    command = python_process.command(__name__, str(shard))
    with (
        tempfile.TemporaryFile() as errors,  # a full pipe would stop the process
        subprocess.Popen(  # noqa: S603 - our own program, without a shell
            command, stdin=DEVNULL, stdout=DEVNULL, stderr=errors
        ) as process,
    ):
        while not stopping.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                if code := process.wait(POLL_INTERVAL_S):
                    errors.seek(0)
                    said = errors.read().decode("utf-8", "replace").strip() or "nothing"
                    raise StoreError(
                        f"The search graph of {shard} was not built: its process ended with {code} "
                        f"and said {said.splitlines()[-1][:200]!r}."
                    )
                return True
        process.kill()
        return False


def main(shard: str) -> None:
    """Build the graph if the shard is large enough."""
    python_process.yield_to_others()
    opened = engine.EdgeShard.load(shard)
    opened.optimize()
    opened.close()


def end_with_parent() -> None:
    """Let the system kill this process when its parent ends, where supported.

    A thread that watches the parent would not run, because the engine holds the GIL.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_OF_PARENT, signal.SIGKILL)


if __name__ == "__main__":
    end_with_parent()
    main(sys.argv[1])
