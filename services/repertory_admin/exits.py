"""The exit codes of the command line, and which error leads to which code."""

from enum import IntEnum
from pathlib import Path

from repertory.errors import RepertoryError, UsageError
from repertory.system.files import FULL


class ExitCode(IntEnum):
    """The meaning of a command's exit code."""

    DONE = 0
    NOT_FOUND = 1
    USAGE = 2
    UNREAD = 3
    NOT_NOW = 4
    DEFECT = 70
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.NOT_FOUND: "nothing was found, or a check failed",
    ExitCode.USAGE: "the command or the configuration is wrong",
    ExitCode.UNREAD: "done, but items or sources could not be read",
    ExitCode.NOT_NOW: "unavailable: the store, model, server or source cannot be reached",
    ExitCode.DEFECT: "a defect of Repertory itself",
    ExitCode.INTERRUPTED: "ended by Ctrl-C",
}


# The optional packages, and the extra that installs each.
_EXTRAS = {
    **dict.fromkeys(("celery", "kombu", "packaging", "redis"), "team"),
    **dict.fromkeys(("ir_measures", "scipy", "sklearn"), "eval"),
}


def missing_package(error: ModuleNotFoundError) -> str:
    """How to install the optional package that is missing; empty if it is not optional."""
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        return ""
    return (
        f"This needs {package}, which is not installed; "
        f"run: pip install 'repertory[{_EXTRAS[package]}]'"
    )


def system_problem(error: Exception) -> str:
    """The system problem behind an error, with a remedy; empty if the error is a defect."""
    if isinstance(error, MemoryError):
        return "There is not enough memory: close other programs, or allow this one more memory."
    if not isinstance(error, OSError):
        return ""
    if error.errno in FULL:
        return f"Nothing more can be written ({error.strerror}): make room, or write elsewhere."
    try:
        Path.cwd()
    except FileNotFoundError:
        return "The current directory has been deleted: go to another one."
    return ""


def code_of(error: RepertoryError) -> ExitCode:
    """The exit code of a command that failed with this error."""
    return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.NOT_NOW
