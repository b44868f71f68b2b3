"""The text of a new configuration file."""

from pathlib import Path
from typing import Any

import msgspec

from repertory.embedding.models import DEFAULT
from repertory.values import SETTINGS

_HEAD = """\
# What Repertory indexes in this project, and how it searches.
# `repertory config check` checks this file, `repertory config show` explains every setting.
# Settings with a good default are commented out; secrets belong in the environment.
"""
_SOURCES = """
# If two items have the same name, the one from the earlier source is preferred.
# The servers of an MCP configuration run only after `repertory config trust FILE`.
# Folders outside of this one are read only while this file is trusted, until it changes.
# A source with visible_to = ["team-a"] is shown only to callers of that group; see `keys create`.
"""
_HOME = """
# From the home directory: remove these if you share this file with others.
"""
_POLICY = """
# What you know about items and no search can find out, by id, name or pattern.
# [[policy]]
# item = "deploy-legacy"
# deprecated_by = "deploy"  # comes before it; also: pin, aliases, boost, when_not_to_use
"""
_EXAMPLES = {"model": DEFAULT.id}


def configuration(entries: list[dict[str, Any]], folder: Path, home: Path) -> str:
    """A configuration file with some sources, its paths relative to its folder or the home.

    Args:
        entries: The sources, as ``discover`` finds them.
        folder: Where the file will be.
        home: The user's home directory.
    """
    here = [entry for entry in entries if not _is_from_home(entry, folder)]
    there = [entry for entry in entries if _is_from_home(entry, folder)]
    parts = [_HEAD, _settings(), _SOURCES]
    parts += [_source(entry, folder, home) for entry in here]
    if there:
        parts += [_HOME, *(_source(entry, folder, home) for entry in there)]
    parts.append(_POLICY)
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _settings() -> str:
    """Every setting that a project may set, commented out, under its table."""
    tables: dict[str, list[str]] = {}
    for setting in SETTINGS.values():
        if not setting.personal:
            table, _, name = setting.key.rpartition(".")
            value = _EXAMPLES.get(setting.field, setting.default)
            tables.setdefault(table, []).append(f"# {name} = {_toml(value)}  # {setting.doc}")
    return "\n\n".join(
        "\n".join([f"[{table}]", *lines] if table else lines) for table, lines in tables.items()
    )


def _source(entry: dict[str, Any], folder: Path, home: Path) -> str:
    lines = ["[[sources]]"]
    for key, value in entry.items():
        shown = _short(Path(value), folder, home) if key in {"path", "config"} else value
        lines.append(f"{key} = {_toml(shown)}")
    return "\n".join(lines)


def _is_from_home(entry: dict[str, Any], folder: Path) -> bool:
    return not Path(entry.get("path") or entry["config"]).is_relative_to(folder)


def _short(path: Path, folder: Path, home: Path) -> str:
    if path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)


def _toml(value: object) -> str:
    """A string, number, boolean or list of these in TOML, whose syntax for them is that of JSON."""
    return msgspec.json.encode(value).decode()
