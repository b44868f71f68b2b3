"""The types of source there are: a new one is a module with a ``build`` and one line here."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from repertory.errors import ConfigurationError
from repertory.sources.source import Source

# Imported only when a configuration has such a source.
_MODULES = {
    "skills": "repertory.sources.skill_folders",
    "python-skills": "repertory.sources.python_skills",
    "markdown-skills": "repertory.sources.markdown_skills",
    "neuroscript": "repertory.sources.neuroscript",
    "builtin-skills": "repertory.sources.builtin_skills",
    "documents": "repertory.sources.documents",
    "tools": "repertory.sources.tool_files",
    "mcp": "repertory.sources.mcp",
    "corpus": "repertory.sources.corpus",
}
TYPES = tuple(_MODULES)


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """The sources of one configuration entry: one for each MCP server, else a single one.

    Args:
        entry: ``type``, mostly ``path`` and ``name``, and what else the type takes.
        base: The folder that relative paths start from.

    Raises:
        ConfigurationError: The type is unknown or the entry is wrong.
    """
    module = _MODULES.get(str(entry.get("type")))
    if module is None:
        raise ConfigurationError(
            f"{entry.get('type')!r} is not a type of source; use one of {', '.join(TYPES)}."
        )
    sources: list[Source] = import_module(module).build(entry, base)
    return sources
