"""Starts the command line, as ``repertory`` or ``python -m repertory_admin``."""

import gc
import signal
import sys
from typing import NoReturn

from repertory.system import python_process

# Long-running commands, by their first argument. They install their own signal handlers.
SERVICES = frozenset(("serve", "mcp", "watch", "worker", "api"))
# New objects between two garbage collections. A search of 10,000 items makes many objects and no
# cycles; with Python's default, it spends a tenth of its time looking for cycles.
OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """Run the command line. During its imports, Ctrl-C ends the process without a traceback.

    A service keeps this behaviour until it installs its own handlers, because an exception from a
    handler can be swallowed during imports.
    """
    python_process.read_as_utf8()
    is_service = not SERVICES.isdisjoint(sys.argv[1:2])
    if is_service:
        python_process.open_many_files()
    else:
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from repertory_admin.cli import cli  # noqa: PLC0415 - it takes a moment

    if is_default and not is_service:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not is_service:
        _handle_other_signals()
    cli()


def _handle_other_signals() -> None:
    """Let a command clean up what it started when it is ended or its terminal is closed."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:  # ``nohup`` has it ignored
            signal.signal(number, _exit)


def _exit(number: int, _: object) -> NoReturn:
    # A closed terminal sends SIGHUP twice; a second SIGTERM ends the process at once.
    signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    main()
