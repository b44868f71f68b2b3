"""The signals that end a service."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

TERMINATION = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def termination_signals() -> Iterator[list[int]]:
    """The received SIGINTs and SIGTERMs; KeyboardInterrupt at the end if there was a SIGINT.

    Nothing is raised in between: threads import modules as they begin, and an exception from a
    signal's handler can be swallowed there, or leave the interpreter's import lock held for
    ever. A second signal ends the process at once.
    """
    received: list[int] = []

    def note(number: int, _: object) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL)

    for number in TERMINATION:
        signal.signal(number, note)
    if hasattr(signal, "pthread_sigmask"):  # a query process is started with both blocked
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINATION)
    yield received
    if signal.SIGINT in received:
        raise KeyboardInterrupt
