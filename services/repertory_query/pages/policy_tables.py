"""Edits single ``[[policy]]`` tables in the text of a configuration file, and shows the change.

All other bytes of the text are kept, including comments. A line that begins with ``[`` may also be
part of a list or of a multi-line string. It begins a table if the text from the previous table to
this line is valid TOML by itself.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from repertory.catalogue.policy import FIELDS
from repertory.errors import ConfigurationError
from repertory.project.configuration_file import BY_HAND, checked, is_toml
from repertory.review.difference import without_same_ends
from repertory.sources.reading import toml

MAX_SIZE = 256 * 1_024  # characters of a file that can be edited here
MAX_DOUBTFUL = 100  # lines that look like the start of a table but are not
CONTEXT_LINES = 3  # around a change that is shown


def policies_in(text: str) -> list[dict[str, Any]]:
    """The policies of a configuration file as written, even if they are invalid.

    Raises:
        ConfigurationError: The text cannot be read, or has no list of tables.
    """
    try:
        found = toml.parse(text).get("policy", [])
    except toml.TomlError as error:
        raise ConfigurationError(f"The configuration file is not TOML: {error}.") from error
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ConfigurationError(f"`policy` is not written as [[policy]] tables; {BY_HAND}.")
    return found


def with_policy(text: str, at: int | None, policy: Mapping[str, Any]) -> str:
    """Add a policy to the end of the text, or replace an existing policy.

    Args:
        text: The text of the file.
        at: The number of the policy to replace, from 0; None to add one.
        policy: Its ``item`` and fields; lines with unchanged values are kept.

    Raises:
        ConfigurationError: The file cannot be changed without losing something.
    """
    before = policies_in(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    if at is None:
        table = _changed("[[policy]]\n", policy).replace("\n", newline)
        lines = text and not text.endswith("\n")
        gap = newline * (2 if lines else 1) if text else ""
        return checked(f"{text}{gap}{table}", text, "policy", [*before, dict(policy)])
    start, stop = _place(text, at)
    table = text[start:stop].replace("\r\n", "\n")
    changed = _changed(table, policy).replace("\n", newline)
    after = [dict(policy) if number == at else one for number, one in enumerate(before)]
    return checked(text[:start] + changed + text[stop:], text, "policy", after)


def without_policy(text: str, at: int) -> str:
    """Remove a policy from the text, and one empty line before it.

    Raises:
        ConfigurationError: The file cannot be changed without losing something.
    """
    before = policies_in(text)
    start, stop = _place(text, at)
    head = text[:start]
    for newline in ("\r\n", "\n"):
        if head.endswith(2 * newline):
            head = head.removesuffix(newline)
            break
    return checked(head + text[stop:], text, "policy", before[:at] + before[at + 1 :])


def changed_lines(before: str, after: str, name: str) -> list[str]:
    """The change of a file as a unified diff; empty if nothing changes."""
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return []
    start, cut_old, cut_new = without_same_ends(old, new, CONTEXT_LINES)
    lines = difflib.unified_diff(cut_old, cut_new, name, name, lineterm="", n=len(cut_old))
    head = f"@@ -{start + 1},{len(cut_old)} +{start + 1},{len(cut_new)} @@"
    return [head if line.startswith("@@") else line for line in lines]


def _changed(table: str, policy: Mapping[str, Any]) -> str:
    """The text of one table with other values."""
    import tomlkit  # noqa: PLC0415 - rarely needed
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415 - as above

    try:
        document = tomlkit.parse(table)
    except TOMLKitError as error:  # its parser differs from Python's in details
        raise ConfigurationError(f"The policy cannot be read ({error}); {BY_HAND}.") from error
    fields = document["policy"][0]
    for key in ("item", *FIELDS):
        value, old = policy.get(key), fields.get(key)
        if value is None and old is not None:
            del fields[key]
        elif value is not None and value != old:
            fields[key] = value
    return document.as_string()


def _place(text: str, at: int) -> tuple[int, int]:
    """The start and the end of a policy in the text, without the comments that follow it.

    Raises:
        ConfigurationError: There is no such table.
    """
    tables = [(start, stop) for start, stop in _tables(text) if _is_policy(text[start:stop])]
    if len(tables) != len(policies_in(text)) or not 0 <= at < len(tables):
        raise ConfigurationError(f"The policy is not written as a [[policy]] table; {BY_HAND}.")
    start, stop = tables[at]
    lines = text[start:stop].splitlines(keepends=True)
    while not lines[-1].strip() or lines[-1].lstrip().startswith("#"):
        lines.pop()
    table = "".join(lines)
    is_same = is_toml(table) and toml.parse(table) == toml.parse(text[start:stop])
    return start, start + len(table) if is_same else stop


def _tables(text: str) -> Iterator[tuple[int, int]]:
    """The parts of a text that begin with a table header.

    Raises:
        ConfigurationError: Too many lines look like a header but are not.
    """
    if len(text) > MAX_SIZE:
        raise ConfigurationError(f"The configuration file is too large for this; {BY_HAND}.")
    starts, at = [], 0
    for line in text.split("\n"):
        if line.lstrip().startswith("["):
            starts.append(at)
        at += len(line) + 1
    begin, doubtful = None, 0
    for stop in (*starts, len(text)):
        if is_toml(text[begin or 0 : stop]):
            if begin is not None:
                yield begin, stop
            begin = stop
        else:
            doubtful += 1
        if doubtful > MAX_DOUBTFUL:
            raise ConfigurationError(f"The configuration file is too unusual for this; {BY_HAND}.")


def _is_policy(table: str) -> bool:
    return isinstance(toml.parse(table).get("policy"), list)
