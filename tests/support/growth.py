"""How the time of a call grows with the size of a text."""

import time
from collections.abc import Callable

SIZES = (50, 500, 5_000)  # repetitions: the second and the third are 10 and 100 times the first
SLACK = 8
FLOOR = 20_000  # nanoseconds; a shorter time is noise


def nanoseconds(call: Callable[[str], object], text: str) -> int:
    """The processor time of a call."""
    began = time.thread_time_ns()
    call(text)
    return time.thread_time_ns() - began


def grows_too_fast(
    call: Callable[[str], object], text: Callable[[int], str], sizes: tuple[int, ...] = SIZES
) -> bool:
    """Whether the time grows clearly faster than the text."""
    small, *others = (text(size) for size in sizes)
    base = max(min(nanoseconds(call, small) for _ in range(3)), FLOOR)
    for size, longer in zip(sizes[1:], others, strict=True):
        most = SLACK * base * size // sizes[0]
        if nanoseconds(call, longer) > most:  # more than once, in case another process disturbed
            return min(nanoseconds(call, longer) for _ in range(3)) > most
    return False
