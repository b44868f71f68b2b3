"""Edits entries in YAML, at the offsets that PyYAML finds."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from repertory.agent_hosts.edits import EditError, Keys, Value, line_at, nested, newline_of
from repertory.sources.reading.structured import Defect, load

_UNIT = "  "
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}  # strings that need quotes


def read(text: str) -> dict[str, Any]:
    """Parse a text. An empty text is an empty mapping.

    Raises:
        EditError: The text is not YAML, is not a mapping, or has aliases.
    """
    value = load(text, "yaml")
    if isinstance(value, Defect):
        raise EditError(f"{value.message}; correct it", value.line)
    if not isinstance(value, dict):
        raise EditError("it is not a YAML mapping; correct it", 1)
    return value


def put(text: str, keys: Keys, value: Value) -> str:
    """Add an entry at the end, or replace the entry of the same name. Returns the new text.

    Raises:
        EditError: A parent of the entry is not a mapping.
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
    """Remove an entry. Returns the new text.

    Args:
        text: A text that has the entry.
        keys: The keys of the entry.
        keep: Whether to keep the parent of the entry if it becomes empty.
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
    """The root node of a text; None if the text is empty."""
    try:
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise EditError(f"the YAML cannot be read: {error}; correct it") from error
    return None if node is None or _is_empty(node) else node


def _members(node: Any) -> dict[str, tuple[Any, Any]]:  # noqa: ANN401 - PyYAML's nodes
    """The key and value nodes of a mapping, by key."""
    return {name.value: (name, value) for name, value in node.value}


def _added(text: str, holder: yaml.MappingNode, member: Value) -> str:
    """Add a member at the end of a mapping. Returns the new text."""
    end = _end(holder.value[-1][1]) if holder.value else holder.start_mark.index + 1
    if holder.flow_style:
        written = (", " if holder.value else "") + json.dumps(member, ensure_ascii=False)[1:-1]
        return text[:end] + written + text[end:]
    newline = newline_of(text)
    end = _line_end(text, end)
    lines = _lines(member, " " * holder.start_mark.column)
    return text[:end] + "".join(newline + line for line in lines) + text[end:]


def _opened(text: str, node: Any, keys: Keys, member: Value) -> str:  # noqa: ANN401 - as above
    """Add a member to a key that has no value yet. Returns the new text.

    Raises:
        EditError: The key has a value.
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
    """The end of a node's text, before any white space and comments."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}:
        end -= 1  # the end of a block scalar is after its last line break
    return end


def _line_start(text: str, at: int) -> int:
    """The start of the line break before the line of an offset; 0 on the first line."""
    line = text.rfind("\n", 0, at)
    return 0 if line < 0 else line - (text[line - 1 : line] == "\r")


def _line_end(text: str, at: int) -> int:
    """The end of the line of an offset, before its line break."""
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
    """A value on one line, as JSON. Strings that YAML does not need to quote are not quoted."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)
