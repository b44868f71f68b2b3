"""Discovers the sources of a folder without a configuration.

Discovery only adds: a new file or folder never removes an item that was found before. So every
place has a separate source with a fixed name, independent of other places. If the folders of two
sources overlap, the inner one reads its folder; see ``FolderSource.share``. There are two
exceptions: files that the user's ``.gitignore`` excludes, and documents in the folder of a new
``SKILL.md``, which then belong to that skill.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from repertory.catalogue.skill_format import SKILL_FILE, SKILL_FILES
from repertory.errors import ConfigurationError, UsageError
from repertory.sources.entry import is_name
from repertory.sources.neuroscript import SUFFIX
from repertory.sources.plugins import Plugins, of_claude, of_gemini
from repertory.sources.reading.walk import Walk
from repertory.sources.skill_folders import HOME_ROOTS, PROJECT_ROOTS, SkillFolders
from repertory.sources.source import PassedOver
from repertory.system.files import is_project
from repertory.system.paths import as_listed, is_inside, lies_in, listed_path, real_path
from repertory.system.untrusted_files import read_beginning

# The MCP configurations of agent hosts.
PROJECT_CONFIGURATIONS = (
    ".mcp.json",
    "mcp.json",
    ".toolscript.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
    ".zed/settings.json",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
    ".amazonq/mcp.json",
    ".factory/mcp.json",
    ".github/mcp.json",
    ".junie/mcp/mcp.json",
    ".kilocode/mcp.json",
    ".kiro/settings/mcp.json",
    ".qwen/settings.json",
    ".roo/mcp.json",
)
HOME_CONFIGURATIONS = (
    ".claude.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
    ".codeium/windsurf/mcp_config.json",
    ".config/Claude/claude_desktop_config.json",
    ".config/Code/User/mcp.json",
    ".config/zed/settings.json",
    ".config/opencode/opencode.json",
    ".config/opencode/opencode.jsonc",
    ".config/goose/config.yaml",
    ".aws/amazonq/mcp.json",
    ".copilot/mcp-config.json",
    ".factory/mcp.json",
    ".junie/mcp/mcp.json",
    ".kiro/settings/mcp.json",
    ".qwen/settings.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    "Library/Application Support/Code/User/mcp.json",
)
# The commands and agents of hosts, both in a project and in a home.
_OF_HOSTS = (".claude/commands", ".claude/agents", ".cursor/commands", ".cursor/agents")
# The known folders of other types of sources, in a project and in a home.
FOLDERS = {
    "python-skills": ("python-skills", "python_skills"),
    "markdown-skills": (
        *_OF_HOSTS,
        *(".github/prompts", ".github/agents", ".github/chatmodes", ".windsurf/workflows"),
        *(".opencode/commands", ".opencode/agents", ".opencode/command", ".opencode/agent"),
        "markdown-skills",
    ),
    "gemini-commands": (".gemini/commands",),
    "tools": ("tools", "tool_schemas", "tool-schemas"),
}
HOME_FOLDERS = {
    "markdown-skills": (
        *_OF_HOSTS,
        *(".codex/prompts", ".config/opencode/commands", ".config/opencode/agents"),
        *(".config/opencode/command", ".config/opencode/agent"),
    ),
    "gemini-commands": (".gemini/commands", ".gemini/extensions"),
}
# The variables that move a folder of the home, which ``.claude.json`` then follows.
_MOVED = {
    ".config": "XDG_CONFIG_HOME",
    ".claude": "CLAUDE_CONFIG_DIR",
    ".claude.json": "CLAUDE_CONFIG_DIR",
    ".codex": "CODEX_HOME",
}
_NO_VARIABLES: Mapping[str, str] = {}
_JSON = ".json"
PEEK_SIZE = 1 << 16  # bytes read of a JSON file to see whether it lists tools
_NAMES = ("procedures", "tool-files", "documents")  # of the sources that read a whole project


class Discovery(msgspec.Struct, frozen=True):
    """The sources found in a folder and the home.

    Attributes:
        entries: The sources as configuration entries, those of the folder first. MCP
            configurations come last, without trust.
        passed_over: The known places that exist but were not taken.
        withheld: The configured sources that are not read until the user trusts their file, each
            with instructions to do so.
        searched: The times of the searched folders; see ``Walk.times``.
    """

    entries: list[dict[str, Any]]
    passed_over: list[PassedOver]
    withheld: list[tuple[dict[str, Any], str]] = []
    searched: dict[str, int] = {}


class _Folder(msgspec.Struct, frozen=True, dict=True):  # the dictionary keeps its real path
    """A known folder of a project or a home, which may be missing."""

    type: str
    name: str
    base: Path
    place: str

    @property
    def path(self) -> Path:
        return self.base / self.place

    @cached_property
    def real(self) -> str:
        """Its path without links, with each name as listed by its folder."""
        return listed_path(self.path)

    @property
    def listed(self) -> str:
        """Its place, with each name as listed by its folder."""
        return as_listed(str(self.base), self.place)

    @cached_property
    def is_linked(self) -> bool:
        """Whether its path below the project or home contains a link."""
        return self.real != os.path.join(listed_path(self.base), self.listed)  # noqa: PTH118 - speed

    @property
    def entry(self) -> dict[str, Any]:
        """The configuration entry of its source."""
        return {"type": self.type, "name": self.name, "path": str(self.path)}


def discover(
    root: Path, home: Path | None = None, environment: Mapping[str, str] = _NO_VARIABLES
) -> Discovery:
    """Find the sources of a folder.

    Args:
        root: A project, or any folder with skills, tool files or documents. At or above a home,
            where agent hosts may start Repertory, only the known places are searched.
        home: The user's home directory; None leaves it out.
        environment: The environment variables, which may move folders of the home.
    """
    passed: list[PassedOver] = []
    is_whole = home is None or is_project(root, home)
    anywhere = SkillFolders(name=_own_name(root), path=root, gitignore=True)
    plugins = _plugins(root, home, environment)
    passed += [one for part in plugins for one in part.passed_over]
    known = [*_known(root, home, environment), *_folders(plugins)]
    taken = _taken(known, anywhere if is_whole else None, passed)
    entries = [folder.entry for folder in taken if folder.base == root]
    searched: dict[str, int] = {}
    if is_whole:
        walked = Walk(root, _is_found_anywhere, anywhere.passes_over)
        entries += _anywhere(root, anywhere, taken, [file.path for file in walked.files])
        searched = walked.times()
    else:
        reason = "it is a home directory or above one, so only its known places are read"
        passed.append(PassedOver(str(root), reason))
    entries += [folder.entry for folder in taken if folder.base != root]
    entries += [
        {"type": "mcp", "config": str(path)}
        for path in dict.fromkeys(_configurations(root, home, environment, plugins))
        if _is_there(path, stat.S_ISREG, "it is not a regular file", passed)
    ]
    return Discovery(entries, passed, searched=searched)


def places(
    root: Path, home: Path | None = None, environment: Mapping[str, str] = _NO_VARIABLES
) -> list[Path]:
    """List every path that ``discover`` checks by name; the paths may be missing."""
    plugins = _plugins(root, home, environment)
    found = [folder.path for folder in (*_known(root, home, environment), *_folders(plugins))]
    found += _configurations(root, home, environment, plugins)
    found += [path for part in plugins for path in part.listings]
    return list(dict.fromkeys(found))


def finds(root: str, path: str) -> bool:
    """Whether a file would make discovery find a source, apart from the known places.

    Args:
        root: The real path of the folder.
        path: The real path of the file.
    """
    folder, name = os.path.split(path)
    is_tool_file = folder == root and name.endswith(_JSON) and _lists_tools(Path(path))
    return _is_found_anywhere(name) or is_tool_file


def may_find(name: str) -> bool:
    """Whether ``finds`` can be true for a file with this name."""
    return _is_found_anywhere(name) or name.endswith(_JSON)


def _is_found_anywhere(name: str) -> bool:
    return name == SKILL_FILE or name.endswith(SUFFIX)


def _known(root: Path, home: Path | None, environment: Mapping[str, str]) -> list[_Folder]:
    found = [_Folder("skills", _name("project", place), root, place) for place in PROJECT_ROOTS]
    found += _of_types(FOLDERS, root)
    if home:
        usual = [_Folder("skills", _name("user", place), home, place) for place in HOME_ROOTS]
        usual += _of_types(HOME_FOLDERS, home, "user-")
        for folder in usual:
            base, place = _moved(home, folder.place, environment)
            found.append(msgspec.structs.replace(folder, base=base, place=place))
    return found


def _moved(home: Path, place: str, environment: Mapping[str, str]) -> tuple[Path, str]:
    """The folder that contains a known place of the home, and the place in it."""
    first, _, rest = place.partition("/")
    moved = Path(environment.get(_MOVED.get(first, ""), ""))
    return (moved, rest or first) if moved.is_absolute() else (home, place)


def _of_types(folders: Mapping[str, Sequence[str]], base: Path, prefix: str = "") -> list[_Folder]:
    """The known folders of several types, each with a source named after its place."""
    return [
        _Folder(kind, prefix + place.strip(".").replace("/", "-"), base, place)
        for kind, places in folders.items()
        for place in places
    ]


def _plugins(root: Path, home: Path | None, environment: Mapping[str, str]) -> list[Plugins]:
    """What the plugins of hosts contain; empty without a home."""
    if home is None:
        return []
    base, place = _moved(home, ".claude/plugins", environment)
    return [of_claude(base / place, root), of_gemini(home / ".gemini" / "extensions", root)]


def _folders(plugins: Sequence[Plugins]) -> list[_Folder]:
    """The folders of plugins as known folders."""
    return [
        _Folder(kind, name, path.parent, path.name)
        for part in plugins
        for kind, name, path in part.folders
    ]


def _configurations(
    root: Path, home: Path | None, environment: Mapping[str, str], plugins: Sequence[Plugins]
) -> list[Path]:
    found = [root / place for place in PROJECT_CONFIGURATIONS]
    if home:
        for known in HOME_CONFIGURATIONS:
            base, place = _moved(home, known, environment)
            found += [base / place, home / known]  # on macOS, Zed ignores the variable
    return found + [path for part in plugins for path in part.configurations]


def _taken(
    known: list[_Folder], anywhere: SkillFolders | None, passed: list[PassedOver]
) -> list[_Folder]:
    """The known folders that exist, each once, preferably under its own path and not a link's.

    A folder of skills may be a link out of the project, such as to a team's skills, but not to a
    parent of the project. Other folders must not lead out of the project, because unlike a
    SKILL.md, their files may not be meant to be found.
    """
    first: dict[tuple[str, str], _Folder] = {}
    there = [
        folder
        for folder in known
        if _is_there(folder.path, stat.S_ISDIR, "it is not a folder", passed)
    ]
    for folder in sorted(there, key=lambda folder: folder.is_linked):
        other = first.setdefault((folder.type, folder.real), folder)
        if other.path == folder.path:
            continue
        reason = f"it leads to {folder.real}, which the source {other.name} reads"
        passed.append(PassedOver(str(folder.path), reason))
    if anywhere:
        for key, folder in list(first.items()):
            if reason := _leads_elsewhere(folder, anywhere):
                passed.append(PassedOver(str(folder.path), reason))
                del first[key]
    taken = list(first.values())
    return [folder for folder in known if folder in taken]


def _leads_elsewhere(folder: _Folder, anywhere: SkillFolders) -> str:
    """Why a known folder is not read at its place; empty if it is read."""
    real, is_skills = folder.real, folder.type == anywhere.type
    if is_skills and folder.is_linked and anywhere.reaches(real):
        return f"it leads to {real}, where its skills are found"
    is_around = is_inside(anywhere.real_path, real)  # it may be the whole disk
    leads_out = is_around if is_skills else not lies_in(real, anywhere.path)
    if folder.base == anywhere.path and leads_out:
        return (
            f"it is a link that leads out of the project to {real}; to read it, name that folder "
            "in a repertory.toml and trust the file"
        )
    return ""


def _anywhere(
    root: Path, skills: SkillFolders, taken: list[_Folder], files: list[str]
) -> Iterator[dict[str, Any]]:
    """The sources that read a whole project: items outside of known folders, and documents."""
    known = [str(folder.base / folder.listed) for folder in taken if folder.type == skills.type]
    procedures, tool_files, documents = _NAMES
    found = {
        (skills.type, skills.name): any(
            file.endswith(SKILL_FILE) and not any(is_inside(file, folder) for folder in known)
            for file in files
        ),
        ("neuroscript", procedures): any(file.endswith(SUFFIX) for file in files),
        ("tools", tool_files): any(map(_lists_tools, json_files(root))),
    }
    for (kind, name), is_found in found.items():
        if is_found:
            yield {"type": kind, "name": name, "path": str(root), "gitignore": True}
    yield {"type": "documents", "name": documents, "path": str(root)}


def _own_name(root: Path) -> str:
    """The name of the source of skills outside of known folders: the project's, if not in use."""
    name = Path(real_path(root)).name
    taken = {*_NAMES, *(folder.name for folder in _known(root, root, {}))}
    return name if is_name(name) and name not in taken else "other-skills"


def _name(whose: str, place: str) -> str:
    """Name the source at a known root: ``.claude/skills`` of a project → project-claude."""
    host = place.removesuffix("skills").replace(".", "").strip("/").replace("/", "-")
    return f"{whose}-{host}" if host else whose


def _is_there(
    path: Path, is_kind: Callable[[int], bool], otherwise: str, passed: list[PassedOver]
) -> bool:
    """Whether a path exists and has a kind. An unreadable one counts, as its scan reports it."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            passed.append(PassedOver(str(path), "it is a link that leads nowhere"))
        return False
    except OSError:
        return True
    if not is_kind(mode):
        passed.append(PassedOver(str(path), otherwise))
    return is_kind(mode)


def entry_of(path: Path) -> list[dict[str, Any]]:
    """Return the entries for a file that the user named.

    Raises:
        UsageError: The kind of file is unknown.
    """
    if path.suffix == ".toml" or _is_mcp_configuration(path):
        return [{"type": "mcp", "config": str(path), "trusted": True}]
    if path.suffix == ".json":
        return [{"type": "tools", "path": str(path)}]
    if path.name in SKILL_FILES:
        return [{"type": "skills", "path": str(path.parent)}]
    raise UsageError(
        f"{path} is neither a folder, a {SKILL_FILE}, an MCP configuration nor a JSON list of "
        "tools; name one of these."
    )


def json_files(root: Path) -> list[Path]:
    """The files of a project in which ``discover`` searches tools."""
    return sorted(root.glob(f"*{_JSON}"))


def _lists_tools(file: Path) -> bool:
    try:
        beginning = read_beginning(real_path(file.parent), file.name, PEEK_SIZE)
        return b'"inputSchema"' in beginning or b'"input_schema"' in beginning
    except OSError:
        return False


def _is_mcp_configuration(path: Path) -> bool:
    from repertory.sources.mcp.config import read_files  # noqa: PLC0415 - only for files

    try:
        return bool(read_files([path]).servers)
    except ConfigurationError:
        return False
