"""Waiting for other threads and processes."""

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

TIMEOUT_S = 60.0  # only a program that hangs takes as long

T = TypeVar("T")


class Pollable(Protocol):
    """A process, which has an exit code once it has ended."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        ...


def until(is_so: Callable[[], T], process: Pollable | None = None, seconds: float = TIMEOUT_S) -> T:
    """Wait until a condition holds, as long as a process runs, and return its value."""
    deadline = time.monotonic() + seconds
    while not (value := is_so()):
        assert time.monotonic() < deadline, "it took too long"
        assert process is None or process.poll() is None, "the process has ended"
        time.sleep(0.02)
    return value
