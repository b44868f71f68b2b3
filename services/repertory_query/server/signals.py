"""The signals that end a service."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_EVERYWHERE = (signal.SIGINT, signal.SIGTERM)
# A closed terminal sends SIGHUP, often twice. Windows does not have it.
TERMINATION = (*_EVERYWHERE, signal.SIGHUP) if hasattr(signal, "SIGHUP") else _EVERYWHERE


@contextmanager
def termination_signals() -> Iterator[list[int]]:
    """Yield the received signals to end. After the block, raise KeyboardInterrupt for a SIGINT.

    SIGHUP is one of these signals, unless it is ignored, such as by ``nohup``.

    Nothing is raised inside the block: threads import modules as they begin, and an exception from
    a signal handler can be swallowed there, or leave the interpreter's import lock held for ever. A
    second SIGINT or SIGTERM ends the process at once.
    """
    received: list[int] = []

    def note(number: int, _: object) -> None:
        received.append(number)
        signal.signal(number, signal.SIG_DFL if number in _EVERYWHERE else signal.SIG_IGN)

    for number in TERMINATION:
        if number in _EVERYWHERE or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, note)
    if hasattr(signal, "pthread_sigmask"):  # query processes are started with blocked signals
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TERMINATION)
    yield received
    if signal.SIGINT in received:
        raise KeyboardInterrupt
