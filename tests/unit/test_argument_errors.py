"""Errors in a command's arguments have the same form as all other errors."""

import pytest
import typer

from repertory_admin.argument_errors import ArgumentsError, refusal


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "Invalid value for '--kind' / '-k': 'spoon' is not one of 'skill', 'tool'.",
            "--kind is 'spoon'; it must be one of skill, tool.",
        ),
        (
            "Invalid value for '--worst': 'x' is not a valid int range.",
            "--worst is 'x'; it must be a whole number.",
        ),
        (
            "Invalid value for '--queries': -3 is not in the range x>=0.",
            "--queries is -3; it must be at least 0.",
        ),
        (
            "Invalid value for '--min-recall': 7.0 is not in the range 0<=x<=1.",
            "--min-recall is 7.0; it must be from 0 to 1.",
        ),
        ("Missing argument 'QUERY...'.", "QUERY is missing."),
        ("No such option: --x", "There is no option --x."),
        (
            "No such option: --limi (Possible options: --limit)",
            "There is no option --limi; there is --limit.",
        ),
        ("No such command 'x'.", "There is no command x."),
        ("Option '--limit' requires an argument.", "--limit needs a value."),
        ("Option '--quiet' does not take a value.", "--quiet takes no value."),
        ("Got unexpected extra argument (y)", "Unexpected argument: y."),
        ("A sentence of another release.", "A sentence of another release."),
    ],
)
def test_an_argument_error_says_what_is_expected(said: str, shown: str) -> None:
    """Other messages of Typer are shown unchanged."""
    error = typer.BadParameter(said)
    error.format_message = lambda: said  # type: ignore[method-assign]  # as Typer makes it
    assert isinstance(error, ArgumentsError)
    assert refusal(error) == shown
