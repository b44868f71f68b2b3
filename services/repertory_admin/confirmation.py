"""Asking the user before something is changed."""

import sys

import typer

from repertory.errors import UsageError


def can_ask() -> bool:
    """Whether a terminal shows the command's questions to someone who can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, *, yes: bool, done: str = "removed") -> None:
    """Ask, unless the answer was given as ``--yes``.

    Args:
        question: The question.
        yes: Whether ``--yes`` was given.
        done: The participle for the error message "Nothing was …".

    Raises:
        UsageError: The answer is no, or there is no terminal to ask in.
    """
    if yes:
        return
    if not can_ask():
        raise UsageError(f"Nothing was {done}: there is no terminal to ask in; give --yes.")
    if not typer.confirm(question, err=True):
        raise UsageError(f"Nothing was {done}.")
