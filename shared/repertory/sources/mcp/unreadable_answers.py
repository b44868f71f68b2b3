"""Repairs answers that the SDK cannot read, so that one bad tool does not cost the whole listing.

The SDK rejects a whole message for half a character, a number with too many digits or deep nesting
in one place. Half a character is replaced by the replacement character, and no tool is lost.

Imports the SDK, which is slow: import it only to contact a server.
"""

import contextlib
import json
import re
from collections.abc import Iterator

from mcp_types import PARSE_ERROR, jsonrpc_message_adapter
from pydantic_core import from_json

from repertory.sources.mcp.traffic import quote
from repertory.text import with_whole_characters

MAX_SIZE = 4 * 2**20  # bytes of an answer to repair, which takes up to 2 s per MiB
MAX_COMPLAINTS = 20

_TEXT = r'"(?:[^"\\]++|\\.)*+"'
_OPEN_TEXT = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'  # an open one matches to the end, for linear time
_TOKEN = re.compile(rf"{_OPEN_TEXT}|[\[\]{{}},]", re.DOTALL)
_KEY = re.compile(rf"\s*+({_TEXT})\s*+:", re.DOTALL)
_NAME = re.compile(r'\s*+\{\s*+"name"\s*+:\s*+("[^"\\]{1,128}")')
_ID = re.compile(r'"id"\s*+:\s*+(\d{1,15}|"[^"\\]{1,100}")')
_LAST_ID = re.compile(rf"{_ID.pattern}\s*+\}}\s*+\Z")
_HEAD = 200  # characters at the start and the end in which a broken answer's id is searched


def mended(data: bytes, complaints: list[str]) -> bytes | None:
    """Return an answer in a form that the SDK reads.

    Args:
        data: One message.
        complaints: Receives descriptions of what was left out, as predicates after the name of the
            server.

    Returns:
        The message with whole characters, or the answer without its unreadable tools. If it has no
        tools or is broken otherwise, an error response to its request. None if it needs no repair
        or is not an answer.
    """
    reason = _fault(data)
    if reason and len(data) <= MAX_SIZE:
        data = with_whole_characters(data)
        if not (reason := _fault(data)):
            return data
    if not reason:
        return None
    text = data.decode("utf-8", "replace")
    found = _ID.search(text, 0, _HEAD) or _LAST_ID.search(text, max(0, len(text) - _HEAD))
    request = found[1] if found else ""
    if len(data) <= MAX_SIZE:
        with contextlib.suppress(ValueError):
            message = dict(_members(text))
            request = message.get('"id"', "").strip() or request
            if '"method"' in message:
                return None
            answer = _without_bad_tools(message, complaints).encode()
            if not _fault(answer):
                return answer
    if not _ID.fullmatch(f'"id":{request}'):
        return None
    fault = {"code": PARSE_ERROR, "message": f"its answer cannot be read: {_short(reason)}"}
    return f'{{"jsonrpc":"2.0","id":{request},"error":{json.dumps(fault)}}}'.encode()


def _fault(data: bytes) -> str:
    """Why the SDK cannot read a message; empty if it can."""
    try:
        jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError as exc:
        return str(exc)
    return ""


def _without_bad_tools(message: dict[str, str], complaints: list[str]) -> str:
    """Rebuild an answer without its unreadable tools.

    Raises:
        ValueError: It has no tools.
    """
    result = dict(_members(message.get('"result"', "")))
    good, bad = [], []
    for number, (_, tool) in enumerate(_members(result.get('"tools"', "")), start=1):
        try:
            from_json(f"[[[{tool}]]]")  # as deep as in the answer
        except ValueError as exc:
            named = f"{json.loads(found[1])} " if (found := _NAME.match(tool)) else ""
            bad.append(f"tool {named}(number {number} of its list), which was left out: {exc}")
        else:
            good.append(tool)
    room = max(0, MAX_COMPLAINTS - len(complaints))
    complaints += [f"sent an unreadable {quote(one)}" for one in bad[:room]]
    if len(bad) > room > 0:
        complaints.append(f"sent {len(bad) - room:,} more unreadable tools")
    result['"tools"'] = f"[{','.join(good)}]"
    message = message | {'"result"': _object(result)}
    return _object(message)


def _members(text: str) -> Iterator[tuple[str, str]]:
    """Yield the members of an object or an array as written; the keys of an array are "".

    Raises:
        ValueError: It is neither, or is not closed.
    """
    depth = start = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
            start = token.end() if depth == 1 else start
        elif depth == 1 and token[0] in ",]}":
            member = text[start : token.start()]
            key = _KEY.match(member)
            if key:
                yield key[1], member[key.end() :]
            elif member.strip():
                yield "", member
            start = token.end()
            depth -= token[0] != ","
            if not depth:
                return
        elif token[0] in "]}":
            depth -= 1
    raise ValueError("it is not closed")


def _object(members: dict[str, str]) -> str:
    return f"{{{','.join(f'{key}:{value}' for key, value in members.items())}}}"


def _short(reason: str) -> str:
    """The first line of a reason after pydantic's heading."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return quote(lines[1 if len(lines) > 1 else 0].partition(" [type=")[0])
