"""Errors in the arguments of a command, worded like Repertory's own errors."""

import re
from typing import Any

import typer

# The base class of all argument errors; Typer exports only its subclass.
ArgumentsError: type[Exception] = typer.BadParameter.__mro__[2]

_MUST = "; it must be "
# Typer's messages, and their replacements. Other messages are unchanged.
_WORDS = (
    (r"Invalid value for '([^']+)'[^:]*: (.+) is not (.+?)\.?", r"\1 is \2; it must be \3."),
    (r"Missing (?:argument|option) '([^']+?)(?:\.\.\.)?'.*", r"\1 is missing."),
    (r"No such option: (\S+) \(Possible options: (.+)\)", r"There is no option \1; there is \2."),
    (r"No such option: (\S+)", r"There is no option \1."),
    (r"No such command '(.+?)'\.", r"There is no command \1."),
    (r"No such command '(.+?)'\. (Did .+\?)", r"There is no command \1. \2"),
    (r"Option '(.+)' requires an argument\.", r"\1 needs a value."),
    (r"Option '(.+)' does not take a value\.", r"\1 takes no value."),
    (r"Got unexpected extra arguments?(?:\(s\))? \((.+)\)", r"Unexpected argument: \1."),
)
_EXPECTED = (
    (r"^a valid int[\w ]*", "a whole number"),
    (r"^a valid float[\w ]*", "a number"),
    (r"^in the range x>=", "at least "),
    (r"^in the range (\S+)<=x<=", r"from \1 to "),
)


def is_help(error: Any) -> bool:  # noqa: ANN401 - Typer's own class is private
    """Whether the error is the help of a group that was called without a command."""
    return type(error).__name__ == "NoArgsIsHelpError"


def refusal(error: Any) -> str:  # noqa: ANN401 - as above
    """What is wrong with the arguments, in one sentence, and the command that shows their help."""
    text = _in_words(error.format_message())
    context = getattr(error, "ctx", None)
    if context is None or _MUST in text:
        return text
    if _is_debounce(text, context):
        text += " Seconds without changes are given with --debounce."
    elif text.startswith("There is no option") and _takes_a_query(context):
        text += " A query that begins with a hyphen follows `--`."
    return f"{text} `{context.command_path} --help` shows how to call it."


def _is_debounce(text: str, context: Any) -> bool:  # noqa: ANN401 - as above
    """Whether ``--quiet`` was given seconds, as before release 0.2."""
    is_number = re.fullmatch(r"Unexpected argument: [\d.]+", text)
    return bool(is_number and context.params.get("quiet") and "debounce" in context.params)


def _takes_a_query(context: Any) -> bool:  # noqa: ANN401 - as above
    return any(one.name == "query" for one in context.command.params)


def _in_words(text: str) -> str:
    for pattern, words in _WORDS:
        if found := re.fullmatch(pattern, text):
            text = found.expand(words)
            break
    fault, must, expected = text.partition(_MUST)
    if not must:
        return text
    for pattern, words in _EXPECTED:
        expected = re.sub(pattern, words, expected)
    return fault + must + expected.replace("'", "")
