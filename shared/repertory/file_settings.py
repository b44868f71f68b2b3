"""The settings, sources and policies that one configuration file sets.

Of a file that was found and is not trusted, only what concerns its own folder has an effect.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from repertory.catalogue.policies import rules as rules_of
from repertory.catalogue.policy import Rule, is_bounded
from repertory.embedding.models import known
from repertory.errors import ConfigurationError
from repertory.sources.entry import check_paths, path_of
from repertory.sources.reading import toml
from repertory.sources.registry import fetches
from repertory.system.paths import real_path
from repertory.system.untrusted_files import read_within
from repertory.trust import TrustStore, digest_of
from repertory.values import PATHS, RENAMED, SETTINGS

MAX_FILE_SIZE = 1 << 20  # bytes
MAX_SOURCES = 500  # per file


class Added(msgspec.Struct, frozen=True):
    """A source whose content is fetched from elsewhere, in addition to all other sources.

    Attributes:
        entry: Its ``[[sources]]`` entry.
        file: The file that contains the entry.
        is_confined: Whether the file was found and is not trusted, so that nothing is fetched.
    """

    entry: dict[str, Any]
    file: Path
    is_confined: bool = False


class FileSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What one configuration file sets; see ``Settings`` for the other fields.

    Attributes:
        values: The values by field, without what is withheld.
        sources: Its local sources; None if it lists none.
    """

    values: dict[str, Any]
    sources: tuple[dict[str, Any], ...] | None
    added: list[Added]
    rules: tuple[Rule, ...]
    withheld: list[str]
    digest: str
    is_confined: bool


def read_file(path: Path, store: Callable[[], TrustStore], *, mine: bool) -> FileSettings:
    """Read a configuration file.

    Args:
        path: The file.
        store: Returns the store of trusted files.
        mine: Whether the user named or owns the file; any other file was found.
    """
    content = _read(path, is_found=not mine)
    document = _parsed(content, path)
    is_free = mine or store().covers(path, content)
    sources, added = None, []
    if "sources" in document:
        written = _sources(document.pop("sources"), path)
        fetched = [entry for entry in written if fetches(entry)]
        for entry in fetched:
            one = _absolute(entry if mine else _reviewed(entry), path.parent)
            added.append(Added(one, path, not is_free))
        if len(fetched) < len(written) or not written:
            sources = tuple(entry for entry in written if not fetches(entry))
    rules = rules_of(
        document.pop("policy", []), str(path), "" if is_free else real_path(path.parent)
    )
    values = _flatten(document, path, mine=mine)
    withheld = []
    if not is_free:
        withheld = _withhold(values)
        if any(map(is_bounded, rules)):
            withheld.append("the full weight of its pins and boosts")
    return FileSettings(
        values=values,
        sources=sources,
        added=added,
        rules=rules,
        withheld=withheld,
        digest=digest_of(content),
        is_confined=not is_free,
    )


def _withhold(values: dict[str, Any]) -> list[str]:
    """Remove the settings that a found file may not set, and list them.

    A model that is not in our table is an untrusted graph, in a folder or on the hub. Without
    caches, each search would start the servers that the user trusts; with a short reconcile
    interval, our server would keep starting them.
    """
    taken = []
    for field in ("model", "device", "no_cache", "reconcile"):
        value = values.get(field)
        if value is not None and not (field == "model" and known(str(value))):
            shown = str(value).lower() if isinstance(value, bool) else repr(value)
            taken.append(f"{SETTINGS[field].key} = {shown}")
            del values[field]
    return taken


def _read(path: Path, *, is_found: bool) -> bytes:
    """Read a file; if it was found, its links must not lead out of its folder."""
    try:
        return read_within(str(path), str(path.parent) if is_found else "", MAX_FILE_SIZE)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error


def _parsed(content: bytes, path: Path) -> dict[str, Any]:
    try:
        return toml.parse(content.decode("utf-8-sig"))
    except ValueError as error:  # neither UTF-8 nor TOML
        line = getattr(error, "line", None)
        place = f"{path}:{line}" if line else str(path)
        raise ConfigurationError(f"{place} is not TOML: {error}.") from error


def _sources(value: object, path: Path) -> tuple[dict[str, Any], ...]:
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        if len(value) > MAX_SOURCES:
            raise ConfigurationError(
                f"{path}: there are {len(value):,} sources; {MAX_SOURCES:,} is the limit, so let "
                "one read a folder above several of them."
            )
        if any("trusted" in entry for entry in value):
            raise ConfigurationError(
                f"{path}: a source cannot be trusted there; use `repertory config trust FILE`."
            )
        if any("environment" in entry for entry in value):
            raise ConfigurationError(
                f"{path}: a source has no `environment`; set `env` of the server in its file."
            )
        for number, entry in enumerate(value, start=1):
            try:
                check_paths(entry, path.parent)
            except ConfigurationError as error:
                raise ConfigurationError(f"{path}: source {number}: {error}") from error
        return tuple(value)
    raise ConfigurationError(
        f"{path}: `sources` is not a list of tables; write each as [[sources]] and its lines below."
    )


def _reviewed(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of a found file, which cannot disable the review of its fetched content."""
    return {**entry, "trust": "review"} if entry.get("trust") == "trusted" else entry


def _absolute(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """An entry with absolute paths."""
    local = {
        key: str(path_of(value, folder))
        for key in ("path", "url")
        if isinstance(value := entry.get(key), str)
        and (key == "path" or value.startswith(("./", "../", "~/")))
    }
    return {**entry, **local}


def _flatten(document: Mapping[str, Any], path: Path, *, mine: bool) -> dict[str, Any]:
    """The settings of a document by field."""
    known = {setting.key: setting for setting in SETTINGS.values()}
    found: dict[str, Any] = {}
    for section, content in document.items():
        table = content if isinstance(content, dict) else {"": content}
        for name, value in table.items():
            key = f"{section}.{name}" if name else section
            if key not in known:
                raise ConfigurationError(f"{path}: {_unknown(key)}")
            if known[key].personal and not mine:
                raise ConfigurationError(
                    f"{path}: a file that came with a project cannot set {key!r}; set it in your "
                    f"own config.toml, or name this file with --config."
                )
            field = known[key].field
            is_path = isinstance(value, str) and _is_path(field, value, path.parent)
            found[field] = str(path_of(value, path.parent)) if is_path else value
    return found


def _unknown(key: str) -> str:
    if now := RENAMED.get(key):
        return f"the setting {key!r} is called {now!r} since release 0.2; rename it."
    return f"there is no setting {key!r}; `repertory config show` lists them."


def _is_path(field: str, value: str, folder: Path) -> bool:
    """Whether a value in a file is a path; the value of ``model`` may also be a name."""
    if field != "model":
        return field in PATHS and bool(value)
    if not value or known(value):
        return False
    # Unlike ``Path.is_dir``, it raises nothing.
    return value.startswith((".", "~")) or os.path.isdir(path_of(value, folder))  # noqa: PTH112
