"""The entry point: all commands, and the one place where an error becomes a line and a code."""

import os
import sys
from typing import Annotated

import typer

from repertory.errors import RepertoryError
from repertory_admin import terminal
from repertory_admin.app import app
from repertory_admin.exits import ExitCode, code_of, missing_package
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
    except BrokenPipeError:  # the reader has gone; Python would say so when it flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _run() -> int | str | None:
    """Run the application and return its exit code."""
    try:
        app(prog_name="repertory")
    except SystemExit as end:  # how Typer ends
        return end.code
    except KeyboardInterrupt:  # before Typer could see it
        return ExitCode.INTERRUPTED
    except RepertoryError as error:
        terminal.warn(str(error))
        return code_of(error)
    except Exception as error:  # the boundary: users never see a traceback unless they ask
        if isinstance(error, ModuleNotFoundError) and (text := missing_package(error)):
            terminal.warn(text)
            return ExitCode.NOT_NOW
        if is_verbose():
            raise
        terminal.warn(f"{type(error).__name__}: {error} (a defect; --verbose shows where)")
        return ExitCode.DEFECT
    return ExitCode.DONE
