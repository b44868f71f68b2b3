"""The types of sources. A new type is a module and one line here.

The line names a class or module with a ``build``, as described below. Optional functions are:
``files_to_trust``, if files other than the catalogue's configuration define its sources;
``passed_over``, if these files may disable sources; ``recognise``, if ``repertory add`` recognises
its addresses (see ``adding``).
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from repertory.errors import ConfigurationError, UsageError
from repertory.groups import checked
from repertory.sources.source import PassedOver, Source, Trust

if TYPE_CHECKING:
    from repertory.sources.fetched.content import Content

# Imported only if a configuration has such a source.
_BUILDERS = {
    "skills": "repertory.sources.skill_folders:SkillFolders",
    "python-skills": "repertory.sources.python_skills:PythonSkills",
    "markdown-skills": "repertory.sources.markdown_skills:MarkdownSkills",
    "gemini-commands": "repertory.sources.gemini_commands:GeminiCommands",
    "neuroscript": "repertory.sources.neuroscript:NeuroScript",
    "builtin-skills": "repertory.sources.builtin_skills",
    "documents": "repertory.sources.documents:Documents",
    "tools": "repertory.sources.tool_files:ToolFiles",
    "mcp": "repertory.sources.mcp.entry",
    "corpus": "repertory.sources.corpus",
}
# Their content is fetched from elsewhere. They are added to the discovered sources. A discovered
# configuration without trust fetches nothing. Their entries get a ``store``: the folder of all
# fetched content.
_FETCHED = {
    "git": "repertory.sources.git.entry",
    "marketplace": "repertory.sources.marketplace.entry",
    "archive": "repertory.sources.archive.entry",
    "openapi": "repertory.sources.openapi.entry",
    "mcp-registry": "repertory.sources.mcp_registry.entry",
}
_BUILDERS |= _FETCHED
TYPES = tuple(_BUILDERS)
COMMON = frozenset({"trust", "visible_to"})  # options of all types


def implementation(kind: str) -> Any:  # noqa: ANN401 - a class or a module
    """Import the class or module of a type."""
    return resolve_name(_BUILDERS[kind])


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the sources of one configuration entry: one for each MCP server, otherwise one.

    Args:
        entry: ``type``, usually ``path`` and ``name``, ``trust``, ``visible_to``, and the type's
            own options.
        base: The folder that relative paths start from.

    Raises:
        ConfigurationError: The type is unknown or the entry is invalid.
    """
    if "type" not in entry:
        shown = entry.get("name") or entry.get("path") or "without a name"
        raise ConfigurationError(
            f"The source {str(shown)[:80]!r} has no `type`; use one of {', '.join(TYPES)}."
        )
    kind = str(entry["type"])
    if kind not in _BUILDERS:
        raise ConfigurationError(
            f"{entry['type']!r} is not a type of source; use one of {', '.join(TYPES)}."
        )
    own = {option: value for option, value in entry.items() if option not in COMMON}
    visible_to = visible_to_of(entry)
    sources: list[Source] = implementation(kind).build(own, base)
    trust = _trust(entry["trust"]) if "trust" in entry else None
    for source in sources:
        source.trust = trust or source.trust
        source.visible_to = visible_to
    return sources


def visible_to_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The groups that may see the sources of an entry; empty for everyone.

    Raises:
        ConfigurationError: The value is not a list of group names, or is empty.
    """
    if "visible_to" not in entry:
        return ()
    value = entry["visible_to"]
    name = entry.get("name") or entry.get("path") or entry.get("config")
    if not isinstance(value, list | tuple) or not value:
        raise ConfigurationError(
            f"The `visible_to` of the source {name!r} is {value!r}; list the groups that may see "
            'it, like ["team-a"], or leave it out to show it to everyone.'
        )
    try:
        return tuple(sorted(checked(value)))
    except UsageError as error:
        raise ConfigurationError(f"The `visible_to` of the source {name!r}: {error}") from error


def _trust(value: object) -> Trust:
    try:
        return Trust(str(value))
    except ValueError:
        raise ConfigurationError(
            f"{value!r} is not a `trust` of a source; use one of {', '.join(Trust)}."
        ) from None


def files_to_trust(entry: Mapping[str, Any], base: Path) -> list[Path] | None:
    """Return the files that define an entry's sources and that the user must trust.

    None if its type has no such files. The files may be missing or invalid.

    Raises:
        ConfigurationError: A path is invalid.
    """
    named = _own(entry, "files_to_trust")
    return named(entry, base) if named else None


def digest_to_trust(path: Path, data: bytes) -> str:
    """The digest of the parts of a file from ``files_to_trust`` that define sources."""
    from repertory.sources.mcp.config import servers_digest  # noqa: PLC0415 - not to search

    return servers_digest(path, data)


def passed_over(entry: Mapping[str, Any], base: Path) -> list[PassedOver]:
    """Return what an entry defines but excludes from reading, such as disabled MCP servers.

    Raises:
        ConfigurationError: As for ``build``.
    """
    named = _own(entry, "passed_over")
    return named(entry, base) if named else []


def fetches(entry: Mapping[str, Any]) -> bool:
    """Whether the content of an entry's sources is fetched from elsewhere."""
    return str(entry.get("type")) in _FETCHED


def contained(entry: Mapping[str, Any], base: Path) -> list[dict[str, Any]]:
    """Return the entries that the fetched content of an entry defines, such as MCP servers.

    They need the user's trust like any discovered ones. They inherit ``visible_to`` from the entry,
    and ``trust`` if that is "quarantine".

    Raises:
        ConfigurationError: As for ``build``.
    """
    own = {"visible_to": entry["visible_to"]} if "visible_to" in entry else {}
    if entry.get("trust") == Trust.QUARANTINE:  # other values are the default, or weaker
        own["trust"] = Trust.QUARANTINE.value
    return [{**one, **own} for content in _contents(entry, base) for one in content.entries]


def _own(entry: Mapping[str, Any], name: str) -> Callable[[Mapping[str, Any], Path], Any] | None:
    """A function of an entry's type, by its name; None if the type does not have it."""
    kind = str(entry.get("type"))
    return getattr(implementation(kind), name, None) if kind in _BUILDERS else None


def declarations(entry: Mapping[str, Any], base: Path) -> list[Path]:
    """Return the files that change when ``contained`` does; they may be missing."""
    try:
        return [content.servers_file for content in _contents(entry, base)]
    except ConfigurationError:
        return []


def _contents(entry: Mapping[str, Any], base: Path) -> "list[Content]":
    """The fetched content that the sources of an entry read, each once."""
    from repertory.sources.fetched.source import FetchedSource  # noqa: PLC0415 - not to search

    fetched = (source for source in build(entry, base) if isinstance(source, FetchedSource))
    return list(dict.fromkeys(source.content for source in fetched))
