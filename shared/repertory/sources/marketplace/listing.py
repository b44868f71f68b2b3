"""A marketplace's list of plugins, with the location of each."""

import re
from typing import Any

import msgspec

from repertory.errors import ConfigurationError, SourceError
from repertory.sources.fetched.urls import shown
from repertory.sources.fetched.writing import checked_folder
from repertory.sources.git.url import checked_ref, is_commit, on_github, protocol_of
from repertory.text import one_line

LISTING = ".claude-plugin/marketplace.json"
MANIFEST = ".claude-plugin/plugin.json"
MAX_PLUGINS = 2_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """The repository of a plugin outside of its marketplace."""

    url: str
    ref: str = ""
    folder: str = ""


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin of a marketplace.

    Attributes:
        name: Its name.
        where: Its folder in the marketplace, or its repository.
        fields: Its entry in the marketplace.
    """

    name: str
    where: str | Elsewhere
    fields: dict[str, Any]


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The plugins of a marketplace, and notes about those that are left out."""

    name: str
    plugins: tuple[Plugin, ...]
    notes: tuple[str, ...]


def read_listing(document: object, location: str) -> Listing:
    """Read a ``marketplace.json``.

    Args:
        document: The JSON document.
        location: Its origin, for messages.

    Raises:
        SourceError: It is not a list of plugins.
    """
    plugins = document.get("plugins") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(plugins, list):
        raise SourceError(f"{location} is not a marketplace: it has no list of `plugins`.")
    if len(plugins) > MAX_PLUGINS:
        raise SourceError(f"{location} lists more than {MAX_PLUGINS:,} plugins.")
    metadata = document.get("metadata")
    top = metadata.get("pluginRoot") if isinstance(metadata, dict) else ""
    found: dict[str, Plugin] = {}
    notes = []
    for number, fields in enumerate(plugins, 1):
        try:
            plugin = _plugin(fields, top if isinstance(top, str) else "")
        except (ValueError, ConfigurationError) as error:
            name = fields.get("name") if isinstance(fields, dict) else ""
            what = one_line(str(name or number))[:100]
            notes.append(f"The plugin {what} was left out: {str(error).rstrip('.')}.")
        else:
            if found.setdefault(plugin.name, plugin) is not plugin:
                notes.append(f"The plugin {plugin.name} is listed twice; the first was taken.")
    name = document.get("name")
    known = name if isinstance(name, str) and _NAME.fullmatch(name) else ""
    return Listing(name=known, plugins=tuple(found.values()), notes=tuple(notes))


def is_listing(document: object) -> bool:
    """Whether a JSON document is a marketplace."""
    return (
        isinstance(document, dict)
        and isinstance(document.get("plugins"), list)
        and isinstance(document.get("owner"), dict | str)
    )


def only_plugin(manifest: object, location: str) -> Listing:
    """The listing of a repository that is a plugin itself.

    Raises:
        SourceError: Its manifest is invalid.
    """
    fields = manifest if isinstance(manifest, dict) else {}
    entry = {"name": fields.get("name"), "source": "./"}
    return read_listing({"name": fields.get("name"), "plugins": [entry]}, location)


def _plugin(fields: object, top: str) -> Plugin:
    if not isinstance(fields, dict):
        raise ValueError("it is not an object")
    name, source = fields.get("name"), fields.get("source")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("its name is not made of letters, digits, dots and hyphens")
    if isinstance(source, str):
        where: str | Elsewhere = _folder(source if source.startswith(".") else f"{top}/{source}")
    elif isinstance(source, dict):
        where = _elsewhere(source)
    else:
        raise ValueError("it has no source")
    return Plugin(name=name, where=where, fields=fields)


def _folder(text: str) -> str:
    try:
        return checked_folder(text.removeprefix("/"))
    except ValueError:
        raise ValueError(f"its folder {text!r} is not in the marketplace") from None


def _elsewhere(source: dict[str, Any]) -> Elsewhere:
    kind = source.get("source")
    if kind == "github":
        url = on_github(str(source.get("repo")))
        if not url:
            raise ValueError("its `repo` is not owner/name")
    elif kind in ("url", "git", "git-subdir"):  # not a set, because it may be unhashable
        url = str(source.get("url"))
        url = on_github(url) or url
        if not protocol_of(url):
            raise ValueError(f"{shown(url)} is not a remote repository")
    else:
        raise ValueError(f"a source of type {one_line(str(kind))[:50]!r} is not supported")
    sha, ref = source.get("sha"), source.get("ref")
    if isinstance(sha, str) and is_commit(sha):
        ref = sha
    folder = _folder(str(source.get("path") or source.get("subdir") or ""))
    return Elsewhere(url=url, ref=checked_ref(ref) if ref else "", folder=folder)
