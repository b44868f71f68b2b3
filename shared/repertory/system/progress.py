"""Callbacks that report the progress of long work."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]  # the stage, how much of it is done, how much in all

Download = Callable[[int, int], None]  # the bytes so far, the bytes in all


def no_progress(_stage: str, _done: int, _total: int) -> None:
    """Report nothing."""
