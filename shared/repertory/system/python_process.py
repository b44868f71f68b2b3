"""Processes that run our own modules: their command line, files, encoding and priority."""

import contextlib
import os
import sys

LOWEST = 19  # scheduling priority: searches and saves come first
OPEN_FILES = 4_096


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module."""
    # Without -P, a module in the current directory could shadow one of ours.
    return [sys.executable, "-P", "-m", module, *arguments]


def open_many_files() -> None:
    """Raise the limit of open files as far as the system allows.

    Each MCP server takes six, one process runs the servers of all projects, and macOS allows 256.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows, or the system refuses
        import resource  # noqa: PLC0415 - as above

        now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = OPEN_FILES if most == resource.RLIM_INFINITY else min(OPEN_FILES, most)
        if now != resource.RLIM_INFINITY and now < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def read_as_utf8() -> None:
    """Restart this program in UTF-8 mode if Python decodes names and arguments differently.

    Otherwise a command could not read non-ASCII file names, and would assume that their items
    were deleted.
    """
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - itself


def yield_to_others() -> None:
    """Give this process the lowest priority, if the system has priorities."""
    if hasattr(os, "nice"):
        os.nice(LOWEST)
