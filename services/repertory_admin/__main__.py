"""Starts the command line, as ``repertory`` or ``python -m repertory_admin``."""

import signal
import sys

# Their first argument. They handle signals by themselves once they run.
SERVICES = frozenset(("serve", "mcp", "watch", "worker", "api"))


def main() -> None:
    """Run it. While it is still being imported, Ctrl-C ends the process without a traceback.

    A service is ended this way until it handles signals: an exception from a handler can be
    swallowed while modules are imported.
    """
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from repertory_admin.cli import cli  # noqa: PLC0415 - it takes a moment

    if is_heeded and SERVICES.isdisjoint(sys.argv[1:2]):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli()


if __name__ == "__main__":
    main()
