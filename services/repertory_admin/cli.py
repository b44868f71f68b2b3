"""The entry point: all commands, and the one place where an error becomes a line and a code."""

import atexit
import contextlib
import os
import sys
import threading
from typing import Annotated, NoReturn

import typer

from repertory.errors import RepertoryError
from repertory_admin import terminal
from repertory_admin.app import app
from repertory_admin.argument_errors import ArgumentsError, is_help, refusal
from repertory_admin.exits import ExitCode, code_of, missing_package, system_problem
from repertory_admin.logs import is_verbose


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as version_of  # noqa: PLC0415 - imports email

        terminal.say(f"repertory {version_of('repertory')}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def cli() -> None:
    """Run the command line; an error becomes one line on stderr and an exit code."""
    terminal.prepare()
    code = _run()
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # the reader has gone
            code = _explained(error)
        # Otherwise Python reports the error again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _end(code)


def _end(code: int | str | None) -> NoReturn:
    """End the process. If no other thread runs, skip freeing its memory.

    Freeing it would take a sixth of the time of a search.
    """
    if isinstance(code, int) and threading.active_count() == 1:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _run() -> int | str | None:
    """Run the application and return its exit code."""
    try:
        return app(prog_name="repertory", standalone_mode=False) or ExitCode.DONE
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Typer made it exit code 1
            gone = terminal.reader_has_gone()
            return ExitCode.DONE if gone else _explained(end.__context__)
        return end.code
    except (KeyboardInterrupt, typer.Abort):  # outside of Typer's handling, or at a prompt
        return ExitCode.INTERRUPTED
    except Exception as error:  # the boundary: users never see a traceback unless they ask
        return _explained(error)


def _explained(error: Exception) -> ExitCode:
    """Explain an error in one line on stderr, and return its exit code.

    With ``--verbose``, a defect is raised again.
    """
    if isinstance(error, ArgumentsError):
        if is_help(error):
            print(error, file=sys.stderr)
        else:
            terminal.warn(refusal(error))
        return ExitCode.USAGE
    if isinstance(error, RepertoryError):
        terminal.warn(str(error))
        return code_of(error)
    if isinstance(error, ModuleNotFoundError) and (text := missing_package(error)):
        terminal.warn(text)
        return ExitCode.NOT_NOW
    if text := system_problem(error):
        terminal.warn(text)
        return ExitCode.NOT_NOW
    if is_verbose():
        raise error
    terminal.warn(f"{type(error).__name__}: {error} (a defect; --verbose shows where)")
    return ExitCode.DEFECT
