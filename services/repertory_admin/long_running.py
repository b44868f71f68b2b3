"""What the commands have in common that run until they are told to end."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from repertory import logs
from repertory.errors import RepertoryError


@contextmanager
def service(usual: int = logging.INFO) -> Iterator[None]:
    """Log as a service does, and say in words what is not installed.

    Until the service handles them itself, signals end the process at once: an exception out of a
    handler may be swallowed while modules are imported.

    Args:
        usual: The least level of what is logged, where none was asked for.
    """
    logs.begin(usual)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package.startswith("repertory"):
            raise
        raise RepertoryError(
            f"This needs {package}, which is not installed; run: pip install 'repertory[team]'"
        ) from error
