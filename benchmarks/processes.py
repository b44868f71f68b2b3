"""The environment variables, termination, CPU time, and memory of processes."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

OWN_PREFIXES = ("REPERTORY_", "TOOLSCRIPT_")  # prefixes of variables that would change the figures


def environment(folder: Path) -> dict[str, str]:
    """This process's environment variables without the user's settings.

    The configuration directory is a missing one below ``folder``.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OWN_PREFIXES)}
    return kept | {"XDG_CONFIG_HOME": str(folder / "no-configuration")}


def end(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    """Terminate a process, and kill it after a timeout."""
    process.terminate()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Usage(msgspec.Struct, frozen=True):
    """The resources that a process and its children have used.

    Attributes:
        cpu: Seconds, including children that have exited.
        memory: Current resident memory in megabytes.
    """

    cpu: float
    memory: float


def usage(pid: int) -> Usage:
    """The resources that a process and its children have used so far."""
    cpu, memory = 0.0, 0.0
    root = psutil.Process(pid)
    for one in (root, *root.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it may have exited in the meantime
            cpu += sum(one.cpu_times()[:4])  # including the time of exited children
            memory += one.memory_info().rss / 1e6
    return Usage(cpu, memory)
