"""Adds and removes an entry in the bytes of a configuration file, and changes nothing else."""

from collections.abc import Callable
from enum import StrEnum
from types import ModuleType
from typing import Any

from repertory.agent_hosts import json_text, toml_text, yaml_text
from repertory.agent_hosts.edits import EditError, Keys, Value
from repertory.agent_hosts.secret_values import secret_values
from repertory.errors import UsageError

_BOM = b"\xef\xbb\xbf"


class Syntax(StrEnum):
    """The syntax of a configuration file."""

    JSON = "json"  # with or without comments
    TOML = "toml"
    YAML = "yaml"


_EDITORS: dict[Syntax, ModuleType] = {
    Syntax.JSON: json_text,
    Syntax.TOML: toml_text,
    Syntax.YAML: yaml_text,
}


def entry_in(data: bytes, syntax: Syntax, keys: Keys) -> Value | None:
    """The entry at some keys; None if missing or not a mapping.

    Raises:
        EditError: The file cannot be parsed.
    """
    value = _at(_EDITORS[syntax].read(_text(data)), keys)
    return value if isinstance(value, dict) else None


def has_holder(data: bytes, syntax: Syntax, keys: Keys) -> bool:
    """Whether the file has the parent of the entry, such as a table of servers."""
    return _at(_EDITORS[syntax].read(_text(data)), keys[:-1]) is not None


def with_entry(data: bytes, syntax: Syntax, keys: Keys, value: Value) -> bytes:
    """Add or replace an entry. Returns the new bytes of the file.

    Raises:
        EditError: The file cannot be parsed, or cannot be edited without changing something else.
        UsageError: A path in the entry is not valid Unicode.
    """

    def put(values: dict[str, Any]) -> None:
        for key in keys[:-1]:
            if values.get(key) is None:  # missing, or a YAML key without a value
                values[key] = {}
            values = values[key]
        values[keys[-1]] = value

    editor = _EDITORS[syntax]
    return _edited(data, editor, keys, lambda text: editor.put(text, keys, value), put)


def without_entry(data: bytes, syntax: Syntax, keys: Keys, *, keep: bool) -> bytes:
    """Remove an existing entry. Returns the new bytes of the file.

    Args:
        data: The bytes of the file.
        syntax: The syntax of the file.
        keys: The keys of the entry.
        keep: Whether to keep the parent of the entry if it becomes empty.

    Raises:
        EditError: As for ``with_entry``.
    """

    def cut(values: dict[str, Any]) -> None:
        del _at(values, keys[:-1])[keys[-1]]

    editor = _EDITORS[syntax]
    return _edited(data, editor, keys, lambda text: editor.cut(text, keys, keep=keep), cut)


def secrets_in(data: bytes, syntax: Syntax) -> set[str]:
    """The values in a file that may be secrets; see ``secret_values``."""
    return secret_values(_EDITORS[syntax].read(_text(data)))


def written(syntax: Syntax, keys: Keys, value: Value) -> str:
    """The text of a new file that has only one entry.

    Raises:
        UsageError: As for ``with_entry``.
    """
    text: str = _EDITORS[syntax].put("", keys, value)
    return _encoded(text).decode()


def _edited(
    data: bytes,
    editor: ModuleType,
    keys: Keys,
    edit: Callable[[str], str],
    change: Callable[[dict[str, Any]], None],
) -> bytes:
    """Edit a file, and check that the parsed values differ by the intended change only."""
    text = _text(data)
    expected = editor.read(text)
    edited = edit(text)
    change(expected)
    try:
        is_same = _is_same(editor.read(edited), expected, keys[0])
    except EditError:
        is_same = False
    if not is_same:
        raise EditError("it cannot be edited without changing more of it; edit it by hand")
    return (_BOM if data.startswith(_BOM) else b"") + _encoded(edited)


def _is_same(values: dict[str, Any], expected: dict[str, Any], holder: str) -> bool:
    """Whether two documents are equal; an empty ``holder`` table equals a missing one."""
    for one in (values, expected):
        if one.get(holder) == {}:
            del one[holder]
    return values == expected or repr(values) == repr(expected)  # NaN is not equal to itself


def _text(data: bytes) -> str:
    try:
        return data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise EditError(
            "it is not UTF-8 text; save it as such", data.count(b"\n", 0, error.start) + 1
        ) from error


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            "The entry would have a path that is not valid Unicode, which no configuration can "
            "have; rename the folder."
        ) from error


def _at(value: Any, keys: Keys) -> Any:  # noqa: ANN401 - any document
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
