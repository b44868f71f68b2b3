"""Edits entries in JSON with comments, at the offsets that Python's JSON parser finds.

Comments and trailing commas are replaced by spaces for the parser, so that offsets in this plain
text are also offsets in the file.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from repertory.agent_hosts.edits import EditError, Keys, Value, line_at, nested, newline_of
from repertory.sources.reading.jsonc import plain_json, without_comments

_SPACE = re.compile(r"[ \t\r\n]*+")
_SAME_LINE_COMMENT = re.compile(r"[ \t]*+(?://[^\r\n]*+|/\*[^\r\n]*?\*/)")
_INDENTATION = re.compile(r"\n([ \t]++)[^ \t\r\n]")
_DECODER = json.JSONDecoder()


class _Member(msgspec.Struct, frozen=True):
    """The offsets of a member's key, its value, and the end of its value."""

    key: int
    value: int
    end: int


class _Object(msgspec.Struct, frozen=True):
    """The offsets of an object's braces, and its members by key."""

    start: int
    close: int
    members: dict[str, _Member]

    @property
    def last(self) -> _Member:
        return max(self.members.values(), key=lambda member: member.end)


def read(text: str) -> dict[str, Any]:
    """Parse a text. An empty text is an empty object.

    Raises:
        EditError: The text is not JSON, or not an object.
    """
    plain = plain_json(text)
    if not plain.strip():
        return {}
    try:
        value = json.loads(plain)
    except json.JSONDecodeError as error:
        raise EditError(
            f"the JSON cannot be read: {error.msg}; correct it", error.lineno
        ) from error
    except ValueError as error:  # Python limits the digits of integers
        raise EditError("a number in the JSON has too many digits; correct it") from error
    except RecursionError as error:
        raise EditError("the JSON is nested too deeply; correct it") from error
    if not isinstance(value, dict):
        raise EditError("it is not a JSON object; correct it", line_at(plain, _skip(plain, 0)))
    return value


def put(text: str, keys: Keys, value: Value) -> str:
    """Add an entry at the end, or replace the entry of the same name. Returns the new text.

    Raises:
        EditError: A parent of the entry is not an object.
    """
    plain = plain_json(text)
    newline = newline_of(text)
    unit = found[1] if (found := _INDENTATION.search(text)) else "  "
    if not plain.strip():
        before = text if not text or text.endswith("\n") else text + newline
        return before + _dump(nested(keys, value), newline, unit) + newline
    at = _skip(plain, 0)
    for depth, key in enumerate(keys):
        holder = _object(plain, at, keys[:depth])
        if key not in holder.members:
            return _added(text, holder, key, nested(keys[depth + 1 :], value), unit)
        at = holder.members[key].value
    member = holder.members[keys[-1]]
    written = _dump(value, newline + _indentation(text, member.key), unit)
    return text[: member.value] + written + text[member.end :]


def cut(text: str, keys: Keys, *, keep: bool) -> str:
    """Remove an entry. Returns the new text.

    Args:
        text: A text that has the entry.
        keys: The keys of the entry.
        keep: Whether to keep the parent of the entry if it becomes empty.
    """
    plain = plain_json(text)
    uncommented = without_comments(text)
    holders = [_object(plain, _skip(plain, 0), ())]
    for key in keys[:-1]:
        holders.append(_object(plain, holders[-1].members[key].value, keys))
    holder, key = holders[-1], keys[-1]
    is_alone = len(holder.members) == 1
    if is_alone and not keep and len(holders) > 1 and not _has_comment(text, plain, holder):
        holder, key = holders[-2], keys[-2]
        is_alone = len(holder.members) == 1
    member = holder.members[key]
    start = _start(text, member)
    comma = uncommented.find(",", member.end, _next(holder, member))
    end = member.end if comma < 0 else comma + 1
    if is_alone:
        inside = text[holder.start + 1 : start] + text[end : holder.close]
        return text[: holder.start + 1] + (inside if inside.strip() else "") + text[holder.close :]
    if member is not holder.last:
        flat = text[end : end + 1] == " " and start == member.key
        return text[:start] + text[end + flat :]
    if comma >= 0:
        return text[:start] + text[end:]
    before = max(one.end for one in holder.members.values() if one is not member)
    comma = uncommented.rindex(",", before, member.key)
    between = text[comma + 1 : start]
    return text[:comma] + (between.rstrip(" ") if start == member.key else between) + text[end:]


def _added(text: str, holder: _Object, key: str, value: Value, unit: str) -> str:
    """Add a member at the end of an object. Returns the new text."""
    newline = newline_of(text)
    uncommented = without_comments(text)
    name = json.dumps(key, ensure_ascii=False)
    if not holder.members:
        outer = newline + _indentation(text, holder.start)
        inside = text[holder.start + 1 : holder.close].rstrip()
        written = f"{outer}{unit}{name}: {_dump(value, outer + unit, unit)}{outer}"
        return text[: holder.start + 1] + inside + written + text[holder.close :]
    last = holder.last
    first = min(member.key for member in holder.members.values())
    if "\n" not in text[holder.start : first]:
        return f"{text[: last.end]}, {name}: {json.dumps(value)}{text[last.end :]}"
    comma = uncommented.find(",", last.end, holder.close)
    end = last.end if comma < 0 else comma + 1
    after = found.end() if (found := _SAME_LINE_COMMENT.match(text, end)) else end
    inner = newline + _indentation(text, last.key)
    written = f"{inner}{name}: {_dump(value, inner, unit)}"
    if comma < 0:
        return text[:end] + "," + text[end:after] + written + text[after:]
    return text[:after] + written + "," + text[after:]


def _object(plain: str, at: int, keys: Keys) -> _Object:
    """The object at an offset of plain JSON. If a key is repeated, its last member counts.

    Raises:
        EditError: The value there is not an object.
    """
    if plain[at] != "{":
        raise EditError(f"{'.'.join(keys)} is not an object; correct it", line_at(plain, at))
    start, members = at, {}
    at = _skip(plain, at + 1)
    while plain[at] != "}":
        key_at = at
        key, at = _DECODER.raw_decode(plain, at)
        value_at = _skip(plain, _skip(plain, at) + 1)  # after the colon
        _, end = _DECODER.raw_decode(plain, value_at)
        members[key] = _Member(key_at, value_at, end)
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return _Object(start, at, members)


def _skip(plain: str, at: int) -> int:
    """The offset after any white space."""
    space = _SPACE.match(plain, at)
    return space.end() if space else at


def _next(holder: _Object, member: _Member) -> int:
    """The offset of the next member, or of the closing brace."""
    after = [one.key for one in holder.members.values() if one.key > member.key]
    return min(after, default=holder.close)


def _start(text: str, member: _Member) -> int:
    """The start of a member; if it is first on its line, that of the preceding line break."""
    line = text.rfind("\n", 0, member.key)
    if line < 0 or text[line : member.key].strip():
        return member.key
    return line - (text[line - 1 : line] == "\r")


def _has_comment(text: str, plain: str, holder: _Object) -> bool:
    """Whether an object with one member has a comment before or after the member."""
    (member,) = holder.members.values()
    parts = (slice(holder.start, member.key), slice(member.end, holder.close))
    blanked = "".join(plain[part] for part in parts)
    return "".join(text[part] for part in parts).replace(",", " ") != blanked


def _indentation(text: str, at: int) -> str:
    """The indentation of the line that contains an offset."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _dump(value: object, newline: str, unit: str) -> str:
    """JSON with each member of an object on its own line, and each list on a single line."""
    if not isinstance(value, Mapping) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = newline + unit
    members = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {_dump(part, inner, unit)}"
        for key, part in value.items()
    ]
    return "{" + ",".join(members) + newline + "}"
