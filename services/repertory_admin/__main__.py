"""Starts the command line, as ``repertory`` or ``python -m repertory_admin``."""

import gc
import signal
import sys
from typing import NoReturn

from repertory import python_process

# Their first argument. They handle signals by themselves once they run.
SERVICES = frozenset(("serve", "mcp", "watch", "worker", "api"))
# The number of new objects after which Python collects cycles. A search of 10,000 items makes many
# objects and no cycles; by default a tenth of its time is spent on looking for them.
OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """Run it. While it is still being imported, Ctrl-C ends the process without a traceback.

    A service is ended this way until it handles signals: an exception from a handler can be
    swallowed while modules are imported.
    """
    python_process.read_as_utf8()
    is_service = not SERVICES.isdisjoint(sys.argv[1:2])
    if is_service:
        python_process.open_many_files()
    else:
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from repertory_admin.cli import cli  # noqa: PLC0415 - it takes a moment

    if is_heeded and not is_service:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not is_service:
        _heed_other_signals()
    cli()


def _heed_other_signals() -> None:
    """Have a command end what it started when it is ended or its terminal is closed."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:  # ``nohup`` has it ignored
            signal.signal(number, _exit)


def _exit(number: int, _: object) -> NoReturn:
    # A terminal that is closed says so twice; a second SIGTERM ends the process at once.
    signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
