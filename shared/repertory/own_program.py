"""Our own modules as programs: work that would hold up this process has one of its own."""

import os
import sys

LOWEST = 19  # in the scheduler, where searches and saves come first


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module."""
    # Without -P, a module of the current directory could take the place of one of ours.
    return [sys.executable, "-P", "-m", module, *arguments]


def yield_to_others() -> None:
    """Give this process the lowest priority, where there are priorities."""
    if hasattr(os, "nice"):
        os.nice(LOWEST)
