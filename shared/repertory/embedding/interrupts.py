"""Ctrl-C while a library is imported that swallows it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_back() -> Iterator[None]:
    """Raise the KeyboardInterrupt of a Ctrl-C at the end; ONNX Runtime would swallow it.

    Who handles signals in another way, and another thread, sees no difference.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if received:  # also instead of an error of the import
            raise KeyboardInterrupt
