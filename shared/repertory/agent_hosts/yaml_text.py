"""Entries in YAML: the text is edited where PyYAML says that they are."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from repertory.agent_hosts.edits import EditError, Keys, Value, line_at, nested, newline_of
from repertory.sources.reading.structured import Defect, load

_UNIT = "  "
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}  # of YAML 1.1 or 1.2


def read(text: str) -> dict[str, Any]:
    """The values of a text; an empty one is an empty mapping.

    Raises:
        EditError: It is not YAML, no mapping, or has aliases.
    """
    value = load(text, "yaml")
    if isinstance(value, Defect):
        raise EditError(f"{value.message}; correct it", value.line)
    if not isinstance(value, dict):
        raise EditError("it is not a YAML mapping; correct it", 1)
    return value


def put(text: str, keys: Keys, value: Value) -> str:
    """The text with an entry, which is added as the last one or replaces that of its name.

    Raises:
        EditError: What shall hold the entry is no mapping.
    """
    newline = newline_of(text)
    node = _document(text)
    if node is None:
        before = text if not text or text.endswith("\n") else text + newline
        return before + newline.join(_lines(nested(keys, value), "")) + newline
    for depth, key in enumerate(keys):
        if not isinstance(node, yaml.MappingNode):
            return _opened(text, node, keys[:depth], nested(keys[depth:], value))
        if key not in _members(node):
            return _added(text, node, nested(keys[depth:], value))
        name, node = _members(node)[key]
    start, stop = name.start_mark.index, _end(node)
    if "\n" in text[start:stop] or _begins_line(text, start):
        written = newline.join(_lines({keys[-1]: value}, " " * name.start_mark.column)).lstrip()
    else:
        written = f"{keys[-1]}: {json.dumps(value)}"
    return text[:start] + written + text[stop:]


def cut(text: str, keys: Keys, *, keep: bool) -> str:
    """The text without an entry.

    Args:
        text: It has the entry.
        keys: Of the entry.
        keep: Whether what holds the entry stays, although nothing else is in it.
    """
    holders = [_document(text)]
    for key in keys[:-1]:
        holders.append(_members(holders[-1])[key][1])
    holder, key = holders[-1], keys[-1]
    is_alone = len(_members(holder)) == 1
    if is_alone and keep and not holder.flow_style:
        return text[: _line_start(text, holder.start_mark.index)] + " {}" + text[_end(holder) :]
    if is_alone and not keep and len(holders) > 1:
        holder, key = holders[-2], keys[-2]
    name, value = _members(holder)[key]
    start, stop = name.start_mark.index, _end(value)
    others = [pair for other, pair in _members(holder).items() if other != key]
    if holder.flow_style:
        after = [one.start_mark.index for one, _ in others if one.start_mark.index > start]
        before = [_end(one) for _, one in others if one.start_mark.index < start]
        if after:
            return text[:start] + text[min(after) :]
        return text[: max(before, default=start)] + text[stop:]
    start, stop = _line_start(text, start), _line_end(text, stop)
    if start == 0:
        stop += len(newline_of(text)) if stop < len(text) else 0
    return text[:start] + text[stop:]


def _document(text: str) -> Any:  # noqa: ANN401 - PyYAML's nodes
    """The top node of a text; None if it is empty."""
    try:
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise EditError(f"the YAML cannot be read: {error}; correct it") from error
    return None if node is None or _is_empty(node) else node


def _members(node: Any) -> dict[str, tuple[Any, Any]]:  # noqa: ANN401 - PyYAML's nodes
    """The nodes of a mapping's keys and values, by key."""
    return {name.value: (name, value) for name, value in node.value}


def _added(text: str, holder: yaml.MappingNode, member: Value) -> str:
    """The text with one more member at the end of a mapping."""
    end = _end(holder.value[-1][1]) if holder.value else holder.start_mark.index + 1
    if holder.flow_style:
        written = (", " if holder.value else "") + json.dumps(member, ensure_ascii=False)[1:-1]
        return text[:end] + written + text[end:]
    newline = newline_of(text)
    end = _line_end(text, end)
    lines = _lines(member, " " * holder.start_mark.column)
    return text[:end] + "".join(newline + line for line in lines) + text[end:]


def _opened(text: str, node: Any, keys: Keys, member: Value) -> str:  # noqa: ANN401 - as above
    """The text with a member in a mapping that is still empty.

    Raises:
        EditError: It has a value.
    """
    start = node.start_mark.index
    if not _is_empty(node):
        raise EditError(
            f"{'.'.join(keys) or 'it'} is not a YAML mapping; correct it", line_at(text, start)
        )
    newline = newline_of(text)
    indentation = " " * (len(keys) * len(_UNIT))
    end = _line_end(text, start)
    return text[:end] + "".join(newline + line for line in _lines(member, indentation)) + text[end:]


def _is_empty(node: Any) -> bool:  # noqa: ANN401 - as above
    return isinstance(node, yaml.ScalarNode) and not node.value and node.style is None


def _end(node: Any) -> int:  # noqa: ANN401 - as above
    """Where the text of a node ends, without white space and comments after it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}:
        end -= 1  # a block ends after the end of its line
    return end


def _line_start(text: str, at: int) -> int:
    """Where the line of a place begins, with the line end before it."""
    line = text.rfind("\n", 0, at)
    return 0 if line < 0 else line - (text[line - 1 : line] == "\r")


def _line_end(text: str, at: int) -> int:
    """Where the line of a place ends, without its line end."""
    line = text.find("\n", at)
    return len(text) if line < 0 else line - (text[line - 1 : line] == "\r")


def _begins_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _lines(value: Value, indentation: str) -> Iterator[str]:
    """The lines of a mapping in block style."""
    for key, part in value.items():
        if isinstance(part, Mapping) and part:
            yield f"{indentation}{_scalar(key)}:"
            yield from _lines(part, indentation + _UNIT)
        elif isinstance(part, list) and part:
            yield f"{indentation}{_scalar(key)}:"
            yield from (f"{indentation}- {_scalar(one)}" for one in part)
        else:
            yield f"{indentation}{_scalar(key)}: {_scalar(part)}"


def _scalar(value: object) -> str:
    """A value on one line: JSON, whose quotes are left out where YAML needs none."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
