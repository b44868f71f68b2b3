"""Tool-schema files: a server's answer to ``tools/list``, saved as JSON."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.errors import SourceError
from repertory.sources.folder import FolderSource
from repertory.sources.reading.files import Found, read_text, walk
from repertory.sources.reading.problems import error, warning
from repertory.sources.reading.structured import Defect, decode_json
from repertory.sources.reading_cache import Reading
from repertory.sources.source import Problem, Scan, Source
from repertory.sources.tools import MAX_NAME_LENGTH, tool_items
from repertory.text import one_line

# A broken file without one of these is other JSON and is ignored.
_OF_TOOLS = re.compile(r'"(?:tools|inputSchema)"')


class ToolList(msgspec.Struct, frozen=True):
    """The tools of one file, and the name of their server."""

    server: str
    tools: list[Any]


class ToolFiles(FolderSource):
    """The tools of one JSON file, or of those below a folder; other JSON is ignored.

    A server's name comes from its file (``server``, ``name`` or ``serverInfo``), otherwise from the
    file's name.
    """

    type = "tools"
    file_limit = 16 << 20

    @override
    def wants(self, filename: str) -> bool:
        """Whether this is a JSON file."""
        return filename.lower().endswith(".json")

    @override
    def scan(self) -> Scan:
        """Read every changed file; see ``Source.scan``.

        Raises:
            SourceError: The folder cannot be read, or the one file is not a list of tools.
        """
        return self._scan_folder() if self.path.is_dir() else self._scan_file()

    def _scan_file(self) -> Scan:
        [reading] = self._readings.read([Found(self.path.name, str(self.path))], self._read_file)
        if reading.broken:
            raise SourceError(
                f"The tool file {self.path} cannot be used, so its items stay as they are: "
                f"{reading.problems[-1].message}"
            )
        return Scan(items=reading.items, problems=reading.problems)

    def _scan_folder(self) -> Scan:
        walked = walk(self.path, self.wants)
        problems = list(walked.problems)
        items: dict[str, Item] = {}
        complete = not walked.unlisted
        readings = self._readings.read(walked.files, self._read_file)
        for file, reading in zip(walked.files, readings, strict=True):
            problems += reading.problems
            complete = complete and not reading.broken
            for item in reading.items:
                if (first := items.setdefault(item.id, item)) is not item:
                    message = f"{first.path} lists the tool {item.id} too; that one is kept."
                    problems.append(warning(file.path, message, item=item.id))
        # The items of a broken file are unknown, so no item counts as deleted.
        unread_under = () if complete else ("",)
        return Scan(items=list(items.values()), problems=problems, unread_under=unread_under)

    @override
    def _read_file(self, file: Found) -> Reading:
        listed, problems = _read(file, self.file_limit)
        if listed is None:
            if not problems and file.path == str(self.path):
                problems = [error(file.path, "It holds no list of tools.")]
            return Reading(problems=problems, broken=bool(problems))
        items, wrong = tool_items(listed.server, self.name, listed.tools, file.path)
        return Reading(items=items, problems=problems + wrong)


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the source of a configuration entry."""
    return [ToolFiles.from_entry(entry, base)]


def _read(file: Found, limit: int) -> tuple[ToolList | None, list[Problem]]:
    """Return the tools and problems of a file; None and no problems for other JSON."""
    text, problems = read_text(file.path, limit)
    if text is None:
        return None, problems
    value = decode_json(text)
    if isinstance(value, Defect):
        if not _OF_TOOLS.search(text):
            return None, []
        return None, [error(file.path, f"The file is broken: {value.message}.", value.line)]
    listed = _tool_list(value, Path(file.place).stem)
    return listed, problems if listed else []


def _tool_list(value: object, server: str) -> ToolList | None:
    """Find the list of tools in a value, wrapped or not; None if there is none."""
    if isinstance(value, list):
        return ToolList(server, value) if any(map(_is_tool, value)) else None
    if not isinstance(value, dict):
        return None
    result = value.get("result")
    tools = (result if isinstance(result, dict) else value).get("tools")
    if not isinstance(tools, list) or (tools and not any(map(_has_name, tools))):
        return None
    return ToolList(_server_name(value) or server, tools)


def _has_name(tool: object) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _is_tool(tool: object) -> bool:
    return (
        isinstance(tool, dict)
        and _has_name(tool)
        and ("inputSchema" in tool or "description" in tool)
    )


def _server_name(value: dict[str, Any]) -> str:
    for key in ("server", "name", "serverInfo"):
        given = value.get(key)
        name = given.get("name") if isinstance(given, dict) else given
        if isinstance(name, str) and 0 < len(one_line(name)) <= MAX_NAME_LENGTH:
            return one_line(name)
    return ""
