"""What the commands have in common that run until they are told to end."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from repertory import json_logs
from repertory.errors import RepertoryError


@contextmanager
def service() -> Iterator[None]:
    """Log as a service does, end in order on SIGTERM, and say in words what is not installed."""
    json_logs.begin()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package.startswith("repertory"):
            raise
        raise RepertoryError(
            f"This needs {package}, which is not installed; run: pip install 'repertory[team]'"
        ) from error
