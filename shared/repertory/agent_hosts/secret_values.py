"""The values in a configuration that may be secrets, which a displayed difference hides."""

import json
from collections.abc import Iterator

# The keys under which hosts keep a server's environment variables and headers.
_TABLES = {"env", "environment", "envs", "headers", "http_headers"}
_NAMES = ("secret", "password", "token", "apikey", "api_key", "api-key")  # endings of other keys
_REFERENCES = ("${", "{env:")
MIN_LENGTH = 4  # shorter values are not secrets, and masking them makes a difference unreadable


def secret_values(document: object) -> set[str]:
    """The values of variables and headers, and those whose key, option or parameter names a secret.

    Each is included unchanged, escaped as in JSON, and line by line, as TOML and YAML may write it.
    References to variables are left out.
    """
    return {form for value in _values(document, is_secret=False) for form in _forms(value)}


def _values(value: object, *, is_secret: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            is_named = key in _TABLES or str(key).lower().endswith(_NAMES)
            yield from _values(part, is_secret=is_secret or is_named)
    elif isinstance(value, list):
        for before, part in zip(["", *value], value, strict=False):
            yield from _values(part, is_secret=is_secret or _is_option(before))
    elif isinstance(value, str):
        yield from [value] if is_secret else _within(value)


def _is_option(argument: object) -> bool:
    """Whether the argument after it may be a secret, as after ``--api-key`` or ``--header``."""
    if not isinstance(argument, str) or not argument.startswith("-"):
        return False
    return argument == "-H" or argument.lower().endswith((*_NAMES, "header"))


def _within(text: str) -> Iterator[str]:
    """The secrets in an argument such as ``--api-key=…``, or in the parameters of a URL."""
    pairs = [text] if text.startswith("-") else text.partition("?")[2].split("&")
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name.lower().endswith((*_NAMES, "key")):
            yield value


def _forms(value: str) -> Iterator[str]:
    if len(value) >= MIN_LENGTH and not any(reference in value for reference in _REFERENCES):
        yield from (value, json.dumps(value)[1:-1])
        lines = map(str.strip, value.splitlines())
        yield from (line for line in lines if len(line) >= MIN_LENGTH)
