"""The start of commands that run until a signal ends them."""

import logging
import signal

from repertory import logs


def begin_service(level: int = logging.INFO) -> None:
    """Log as a service does, and let signals end the process at once until it handles them.

    An exception from a handler may be swallowed while modules are imported.

    Args:
        level: The minimum level of log records, unless the user asked for another.
    """
    logs.begin(level)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
