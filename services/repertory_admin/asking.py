"""Asking the user before something is removed."""

import sys

import typer

from repertory.errors import UsageError


def confirm(question: str, *, yes: bool) -> None:
    """Ask, unless the answer was given as ``--yes``.

    Raises:
        UsageError: The answer is no, or there is no terminal to ask in.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Nothing was removed: there is no terminal to ask in; give --yes.")
    if not typer.confirm(question, err=True):
        raise UsageError("Nothing was removed.")
