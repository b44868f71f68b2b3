"""Keeps Ctrl-C working during the import of a library that swallows it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Delay KeyboardInterrupt to the end of the block.

    The import of ONNX Runtime would swallow it.

    Does nothing on other threads, or if the program has its own handler for SIGINT.
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
        if received:  # even if the import failed; this replaces its error
            raise KeyboardInterrupt
