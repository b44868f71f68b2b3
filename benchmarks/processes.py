"""The CPU time and the memory of processes, with their children."""

import os
from pathlib import Path

import msgspec

_TICK = os.sysconf("SC_CLK_TCK")


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
    children = _children()
    cpu, memory = 0.0, 0.0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        waiting += children.get(one, [])
        fields = _stat(one)
        cpu += sum(map(int, fields[11:15])) / _TICK
        memory += int(fields[21]) * os.sysconf("SC_PAGESIZE") / 1e6
    return Usage(cpu, memory)


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and (fields := _stat(int(folder.name))):
            found.setdefault(int(fields[1]), []).append(int(folder.name))
    return found


def _stat(pid: int) -> list[str]:
    """The fields after the name, of which the first is the state; none if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
