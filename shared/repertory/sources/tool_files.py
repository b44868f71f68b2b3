"""Tool-schema files: a server's answer to ``tools/list``, saved as JSON."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from typing_extensions import override

from repertory.errors import SourceError
from repertory.sources.folder import FolderSource
from repertory.sources.folder_contents import Entry, FolderContents
from repertory.sources.reading.files import NO_TEXT, Found, read_file
from repertory.sources.reading.structured import Defect, Json, decode_json
from repertory.sources.reading_cache import Reading, unread
from repertory.sources.source import Problem, Scan, error, warning
from repertory.sources.tools import MAX_NAME_LENGTH, as_mcp, tool_items
from repertory.sources.walked import Walked
from repertory.system.paths import place_below, real_path
from repertory.text import one_line

MAX_DIGITS = 30  # of an integer; longer ones become text


class ToolFiles(FolderSource):
    """The tools of one JSON file, or of all JSON files below a folder. Other JSON is ignored.

    A server's name comes from the content (``server``, ``name`` or ``serverInfo``), otherwise from
    the file's name.
    """

    type = "tools"
    file_limit = 16 << 20

    @override
    def wants(self, filename: str) -> bool:
        return filename.lower().endswith(".json")

    @override
    def scan(self) -> Scan:
        if os.path.isdir(self.path):  # noqa: PTH112 - False also below a folder that is closed
            return super().scan()
        self.check_place()
        self._contents = None
        [reading] = self._readings.read([self._single()], self._read_file)
        if reading.broken:
            raise SourceError(
                f"The tool file {self.path} cannot be used, so its items stay as they are: "
                f"{reading.problems[-1].message}"
            )
        return Scan(
            items=reading.items,
            problems=reading.problems,
            unchanged=frozenset(one.id for one in reading.known),
            postponed=frozenset([str(self.path)] if reading.postponed else ()),
        )

    def _single(self) -> Found:
        """The source's single file, which must be inside ``within``."""
        if not self.within:
            return Found(self.path.name, str(self.path))
        root = real_path(self.within)
        try:
            return Found(place_below(root, str(self.path)), str(self.path), root)
        except OSError as exc:
            raise SourceError(f"{self.path} cannot be read: {exc.strerror}.") from exc

    @override
    def summary(self, contents: FolderContents, walked: Walked) -> Scan:
        """The scan. If the items of an unread file are unknown, no item counts as deleted."""
        scan = super().summary(contents, walked)
        is_unknown = walked.unlisted or any(
            (reading.broken or reading.postponed) and not reading.known
            for _, reading in contents.marked()
        )
        return msgspec.structs.replace(scan, unread_under=("",)) if is_unknown else scan

    @override
    def same_id(self, item: Entry, first: Entry) -> Problem:
        message = f"{first.path} lists the tool {item.id} too; that one is kept."
        return warning(item.path, message, item=item.id)

    @override
    def _read_file(self, file: Found) -> Reading:
        text, problems = read_file(file, self.file_limit)
        before = self._readings.last(file.path)
        last = before.known_items()
        was_listing = bool(last) or before.broken
        if text is None:
            is_other = not was_listing and all(one.message in NO_TEXT for one in problems)
            if is_other and file.path != str(self.path):
                return Reading(problems=problems)
            return Reading(problems=problems, broken=True, known=last)
        value = _decoded(text)
        listed_tools = was_listing or _lists_tools(text)
        if isinstance(value, Defect) and listed_tools:
            message = f"The file is broken: {value.message}."
            problems = [error(file.path, message, value.line)]
            return Reading(problems=problems, broken=True, known=last)
        listed = _tool_list(value, Path(file.place).stem)
        if listed is None:
            if file.path != str(self.path):
                return Reading()
            return unread(file, "It has no list of tools.")
        server, tools = listed
        items, wrong = tool_items(server, self.name, tools, file.path)
        return Reading(items=items, problems=problems + wrong)


def _decoded(text: str) -> Json | Defect:
    """Decode a file, leniently so that an invalid value affects only its own tool.

    Programs write lone surrogates, ``NaN`` and ``Infinity``, and integers of any length.
    """
    value = decode_json(text)
    if not isinstance(value, Defect):
        return value
    try:
        lenient: Json = json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError):
        return value
    return lenient


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_DIGITS else digits


def _lists_tools(text: str) -> bool:
    """Whether a broken file was meant to list tools; otherwise it is other JSON and is ignored."""
    return any(f'"{key}"' in text for key in ("tools", "inputSchema", "input_schema"))


def _tool_list(value: object, server: str) -> tuple[str, list[Any]] | None:
    """The server's name and the tools in a value, wrapped or not; None if there are no tools."""
    if isinstance(value, list):
        return (server, value) if any(map(_is_tool, value)) else None
    if not isinstance(value, dict):
        return None
    result = value.get("result")
    tools = (result if isinstance(result, dict) else value).get("tools")
    if not isinstance(tools, list) or (tools and not any(map(_has_name, tools))):
        return None
    return _server_name(value) or server, tools


def _has_name(tool: object) -> bool:
    tool = as_mcp(tool)
    return isinstance(tool, Mapping) and isinstance(tool.get("name"), str)


def _is_tool(tool: object) -> bool:
    """Whether an element of a bare list is a tool. A name is not enough: other data has names."""
    tool = as_mcp(tool)
    return _has_name(tool) and isinstance(tool, Mapping) and "inputSchema" in tool


def _server_name(value: dict[str, Any]) -> str:
    for key in ("server", "name", "serverInfo"):
        given = value.get(key)
        name = given.get("name") if isinstance(given, dict) else given
        if isinstance(name, str) and 0 < len(one_line(name)) <= MAX_NAME_LENGTH:
            return one_line(name)
    return ""
