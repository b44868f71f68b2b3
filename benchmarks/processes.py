"""The CPU time and the memory of processes, with their children."""

from contextlib import suppress

import msgspec
import psutil


class Usage(msgspec.Struct, frozen=True):
    """What a process and its children have used.

    Attributes:
        cpu: Seconds, also of children that have ended.
        memory: What is resident now, in megabytes.
    """

    cpu: float
    memory: float


def usage(pid: int) -> Usage:
    """What a process and its children have used so far."""
    cpu, memory = 0.0, 0.0
    root = psutil.Process(pid)
    for one in (root, *root.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            cpu += sum(one.cpu_times()[:4])  # its own, and of children that have ended
            memory += one.memory_info().rss / 1e6
    return Usage(cpu, memory)
