"""Wait for other threads and processes."""

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

TIMEOUT_S = 60.0  # only a hanging program reaches it

T = TypeVar("T")


class Pollable(Protocol):
    """A process that can be asked for its exit code."""

    def poll(self) -> int | None:
        """The exit code; None while the process runs."""
        ...


def until(is_so: Callable[[], T], process: Pollable | None = None, seconds: float = TIMEOUT_S) -> T:
    """Wait until a condition is true, and return its value.

    Fails after a timeout, or if the process, if given, ends first.
    """
    deadline = time.monotonic() + seconds
    while not (value := is_so()):
        assert time.monotonic() < deadline, "it took too long"
        assert process is None or process.poll() is None, "the process has ended"
        time.sleep(0.02)
    return value
