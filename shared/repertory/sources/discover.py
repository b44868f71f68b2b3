"""The sources of a folder without a configuration."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repertory.errors import ConfigurationError, UsageError
from repertory.sources.neuroscript import SUFFIX
from repertory.sources.reading.files import walk
from repertory.sources.skill_folders import HOME_ROOTS, PROJECT_ROOTS, SKILL_FILE

# Where agent hosts keep their MCP configurations.
PROJECT_CONFIGURATIONS = (
    ".mcp.json",
    "mcp.json",
    ".toolscript.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
)
HOME_CONFIGURATIONS = (
    ".claude.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
)
PLUGIN = ".claude-plugin"
TOOL_FOLDERS = ("tools", "tool_schemas", "tool-schemas")
PYTHON_SKILL_FOLDERS = ("python-skills", "python_skills")
PEEK_SIZE = 1 << 16  # bytes of a JSON file that may list tools
MARKDOWN_SKILL_FOLDERS = (".claude/commands", ".claude/agents", "markdown-skills")


def discover(root: Path, home: Path | None = None) -> list[dict[str, Any]]:
    """Find the sources of a folder, as configuration entries; those of the home come last.

    MCP configurations are included, without trust.

    Args:
        root: A project, or any folder with skills, tool files or documents. Agent hosts may start
            us in a home or above it; there, only the known places are searched.
        home: The user's home directory; None leaves it out.
    """
    entries = list(_in_project(root, whole=home is None or is_project(root, home)))
    if home:
        known = [entry.get("path", entry.get("config")) for entry in entries]
        entries += [
            entry for entry in _in_home(home) if entry.get("path", entry.get("config")) not in known
        ]
    return entries


def is_project(root: Path, home: Path) -> bool:
    """Whether a folder may be a project: neither a home nor a parent of homes."""
    return root not in {home, Path(root.anchor), Path("/home"), Path("/Users")}


def places(root: Path, home: Path | None = None) -> list[Path]:
    """List every path that ``discover`` checks by name; the paths may be missing."""
    folders = (*PYTHON_SKILL_FOLDERS, *MARKDOWN_SKILL_FOLDERS, *TOOL_FOLDERS)
    names = (*PROJECT_ROOTS, PLUGIN, *folders, *PROJECT_CONFIGURATIONS)
    found = [root / name for name in names]
    if home:
        found += [home / name for name in (*HOME_ROOTS, *HOME_CONFIGURATIONS)]
    return list(dict.fromkeys(found))


def _in_project(root: Path, *, whole: bool) -> Iterator[dict[str, Any]]:
    """Find sources at the known places of a project and, if ``whole``, anywhere in it."""
    yield from _skills(root, whole=whole)
    for kind, places in (
        ("python-skills", PYTHON_SKILL_FOLDERS),
        ("markdown-skills", MARKDOWN_SKILL_FOLDERS),
        ("tools", TOOL_FOLDERS),
    ):
        for place in places:
            if (root / place).is_dir():
                name = place.strip(".").replace("/", "-")
                yield {"type": kind, "name": name, "path": str(root / place)}
    if any(_lists_tools(file) for file in sorted(root.glob("*.json"))):
        yield {"type": "tools", "path": str(root)}
    if whole and _holds(root, SUFFIX):
        yield {"type": "neuroscript", "name": "procedures", "path": str(root)}
    for place in PROJECT_CONFIGURATIONS:
        if (root / place).is_file():
            yield {"type": "mcp", "config": str(root / place)}
    if whole:
        yield {"type": "documents", "name": "documents", "path": str(root)}


def _skills(root: Path, *, whole: bool) -> Iterator[dict[str, Any]]:
    roots = [place for place in PROJECT_ROOTS if (root / place).is_dir()]
    if whole and (root / PLUGIN).is_dir():
        roots = []  # a plugin or a marketplace of them keeps skills anywhere
    for place in roots:
        yield {"type": "skills", "name": _name("project", place), "path": str(root / place)}
    if whole and not roots and _holds(root, SKILL_FILE):
        yield {"type": "skills", "path": str(root)}


def _in_home(home: Path) -> Iterator[dict[str, Any]]:
    for place in HOME_ROOTS:
        if (home / place).is_dir():
            yield {"type": "skills", "name": _name("user", place), "path": str(home / place)}
    for place in HOME_CONFIGURATIONS:
        if (home / place).is_file():
            yield {"type": "mcp", "config": str(home / place)}


def _name(whose: str, place: str) -> str:
    """Name the source at a known root: ``.claude/skills`` of a project → project-claude."""
    host = place.removesuffix("skills").replace(".", "").strip("/").replace("/", "-")
    return f"{whose}-{host}" if host else whose


def _holds(root: Path, ending: str) -> bool:
    return bool(walk(root, lambda name: name.endswith(ending)).files)


def entry_of(path: Path) -> list[dict[str, Any]]:
    """Return the entries for a folder or file that the user named.

    Raises:
        UsageError: It is no folder and no known kind of file.
    """
    if path.is_dir():
        return discover(path)
    if path.suffix == ".toml" or _is_mcp_configuration(path):
        return [{"type": "mcp", "config": str(path), "trusted": True}]
    if path.suffix == ".json":
        return [{"type": "tools", "path": str(path)}]
    if path.name == SKILL_FILE:
        return [{"type": "skills", "path": str(path.parent)}]
    raise UsageError(
        f"{path} is neither a folder, a {SKILL_FILE}, an MCP configuration nor a JSON list of "
        "tools; name one of these."
    )


def _lists_tools(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return b'"inputSchema"' in opened.read(PEEK_SIZE)
    except OSError:
        return False


def _is_mcp_configuration(path: Path) -> bool:
    from repertory.sources.mcp.config import read_servers  # noqa: PLC0415 - only for files

    try:
        return bool(read_servers([path]))
    except ConfigurationError:
        return False
