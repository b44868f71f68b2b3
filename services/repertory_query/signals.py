"""The signals that end a service."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_EVERYWHERE = (signal.SIGINT, signal.SIGTERM)
# A terminal that is closed sends SIGHUP, often twice. Windows has none.
TERMINATION = (*_EVERYWHERE, signal.SIGHUP) if hasattr(signal, "SIGHUP") else _EVERYWHERE


@contextmanager
def termination_signals() -> Iterator[list[int]]:
    """The received signals to end; KeyboardInterrupt at the end if there was a SIGINT.

    One is a SIGHUP, unless it is ignored, as by ``nohup``.

    Nothing is raised in between: threads import modules as they begin, and an exception from a
    signal's handler can be swallowed there, or leave the interpreter's import lock held for
    ever. A second SIGINT or SIGTERM ends the process at once.
    """
    received: list[int] = []

    def note(number: int, _: object) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL if number in _EVERYWHERE else signal.SIG_IGN)

    for number in TERMINATION:
        if number in _EVERYWHERE or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, note)
    if hasattr(signal, "pthread_sigmask"):  # a query process is started with them blocked
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINATION)
    yield received
    if signal.SIGINT in received:
        raise KeyboardInterrupt
