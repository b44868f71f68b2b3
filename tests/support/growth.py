"""Check how a call's processor time grows with the size of its text."""

import time
from collections.abc import Callable

SIZES = (50, 500, 5_000)  # repetitions: each is 10 times the one before
SLACK = 8
FLOOR = 20_000  # nanoseconds; shorter times are noise


def nanoseconds(call: Callable[[str], object], text: str) -> int:
    """The processor time of a call."""
    began = time.thread_time_ns()
    call(text)
    return time.thread_time_ns() - began


def grows_too_fast(
    call: Callable[[str], object], text: Callable[[int], str], sizes: tuple[int, ...] = SIZES
) -> bool:
    """Whether the time grows clearly faster than linearly with the size of the text."""
    small, *others = (text(size) for size in sizes)
    base = max(min(nanoseconds(call, small) for _ in range(3)), FLOOR)
    for size, longer in zip(sizes[1:], others, strict=True):
        most = SLACK * base * size // sizes[0]
        if nanoseconds(call, longer) > most:  # measured again, as other processes may disturb it
            return min(nanoseconds(call, longer) for _ in range(3)) > most
    return False
