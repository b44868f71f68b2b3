"""Starts the command line, as ``repertory`` or ``python -m repertory_admin``."""

import signal


def main() -> None:
    """Run it. While it is still being imported, Ctrl-C ends the process without a traceback."""
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from repertory_admin.cli import cli  # noqa: PLC0415 - it takes a moment

    if is_heeded:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli()


if __name__ == "__main__":
    main()
