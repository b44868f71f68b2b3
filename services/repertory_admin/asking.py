"""Asking the user before something is removed or written."""

import sys

import typer

from repertory.errors import UsageError


def confirm(question: str, *, yes: bool, refused: str = "Nothing was removed") -> None:
    """Ask, unless the answer was given as ``--yes``.

    Args:
        question: The question.
        yes: The answer, if it was given.
        refused: What to say if the answer is no.

    Raises:
        UsageError: The answer is no, or there is no terminal to ask in.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{refused}: there is no terminal to ask in; give --yes.")
    if not typer.confirm(question, err=True):
        raise UsageError(f"{refused}.")
