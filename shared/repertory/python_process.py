"""Processes that run our own modules: their command line, files, encoding and priority."""

import contextlib
import os
import sys

LOWEST = 19  # in the scheduler, where searches and saves come first
OPEN_FILES = 4_096


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module."""
    # Without -P, a module of the current directory could take the place of one of ours.
    return [sys.executable, "-P", "-m", module, *arguments]


def open_many_files() -> None:
    """Let this process have many files open, as far as the system lets it.

    Each MCP server takes six, those of all projects are in one process, and macOS grants 256.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows; a system that refuses
        import resource  # noqa: PLC0415 - as above

        now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = OPEN_FILES if most == resource.RLIM_INFINITY else min(OPEN_FILES, most)
        if now != resource.RLIM_INFINITY and now < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def read_as_utf8() -> None:
    """Start this program again where Python reads names and arguments in another encoding.

    A command in such a locale would read no name that is not ASCII, and take its item for deleted.
    """
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - itself


def yield_to_others() -> None:
    """Give this process the lowest priority, where there are priorities."""
    if hasattr(os, "nice"):
        os.nice(LOWEST)
