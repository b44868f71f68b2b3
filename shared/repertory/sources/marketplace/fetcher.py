"""Fetches a marketplace and the plugins that it lists, also from other repositories."""

import shutil
import threading
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from typing_extensions import override

from repertory.errors import SourceError
from repertory.sources.fetched.content import CURRENT
from repertory.sources.fetched.document import DocumentFetcher
from repertory.sources.fetched.fetcher import Declared, Fetched, Fetcher, State
from repertory.sources.fetched.servers import read_json
from repertory.sources.fetched.urls import check_step, shown
from repertory.sources.git.fetcher import GitFetcher
from repertory.sources.git.url import protocol_of
from repertory.sources.marketplace.listing import (
    LISTING,
    MANIFEST,
    Elsewhere,
    Listing,
    Plugin,
    only_plugin,
    read_listing,
)
from repertory.sources.marketplace.plugin import PluginCollector

MAIN, PLUGINS = "marketplace", "plugins"  # the folders of the content
IDS = "offers.json"  # the ids of all plugins' items
MAX_ELSEWHERE = 300  # plugins that are fetched from other repositories
MAX_SIZE = 2**30  # bytes of all these together
CONCURRENCY = 4
_PART = "part:"  # prefix of the validators with the states of parts


class _Part(NamedTuple):
    """The state of the marketplace itself or of a plugin from another repository."""

    revision: str
    notes: tuple[str, ...]


class MarketplaceFetcher(Fetcher):
    """Fetches a marketplace.

    Args:
        main: Fetches the marketplace itself, which is a repository or a single document.
    """

    def __init__(self, main: GitFetcher | DocumentFetcher) -> None:
        self.location = main.location
        self.cancelled = main.cancelled
        self._main = main
        self._lock = threading.Lock()  # for the size
        self._size = 0

    @override
    def key(self) -> Mapping[str, Any]:
        if isinstance(self._main, DocumentFetcher):  # keep: existing folders are named after it
            return {"main": {"document": self._main.url}}
        return {"main": self._main.key()}

    @override
    def fetch(self, into: Path, last: State, *, may_ask: bool) -> Fetched | None:
        before = into.parent / CURRENT
        old = _parts_of(last)
        main = self._fetched(self._main, MAIN, into, last, may_ask=may_ask)
        listing = _listing((into if main else before) / MAIN, self.location)
        parts = {MAIN: _Part(main.revision, main.notes) if main else old[MAIN]}
        notes = [*parts[MAIN].notes, *listing.notes]
        plugins = [one for one in listing.plugins if isinstance(one.where, Elsewhere)]
        if len(plugins) > MAX_ELSEWHERE:
            notes.append(f"Only {MAX_ELSEWHERE} plugins from other repositories were fetched.")
        for plugin, found in self._fetch_plugins(plugins[:MAX_ELSEWHERE], into, last):
            folder = _folder_of(plugin)
            if isinstance(found, SourceError):
                notes.append(f"The plugin {plugin.name} was not fetched: {found}")
            if isinstance(found, Fetched):
                parts[folder] = _Part(found.revision, found.notes)
            elif folder in old:
                parts[folder] = old[folder]
            if folder in parts:
                notes += [f"The plugin {plugin.name}: {note}" for note in parts[folder].notes]
        if parts == old and tuple(notes) == last.notes:
            return None
        for folder in parts:
            if not (into / folder).exists():
                (into / folder).parent.mkdir(exist_ok=True, mode=0o700)
                shutil.copytree(before / folder, into / folder, copy_function=shutil.copy)
        declared = _collect(listing, into, parts, self.cancelled.is_set)
        validators = main.validators if main else last.validators
        own = {name: one for name, one in validators.items() if not name.startswith(_PART)}
        return Fetched(
            revision=parts[MAIN].revision,
            validators=own | _validators_of(parts),
            notes=tuple(notes),
            declared=declared,
        )

    def _fetched(
        self, part: Fetcher, folder: str, into: Path, last: State, *, may_ask: bool = False
    ) -> Fetched | None:
        """Fetch one part into its folder; None, without a folder, if the last one is current."""
        target = into / folder
        target.mkdir(parents=True, mode=0o700)
        old = _parts_of(last).get(folder)
        own = msgspec.structs.replace(last, revision=old.revision if old else "")
        try:
            found = part.fetch(target, own, may_ask=may_ask)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        if found is None:
            target.rmdir()
        return found

    def _fetch_plugins(
        self, plugins: Sequence[Plugin], into: Path, last: State
    ) -> list[tuple[Plugin, Fetched | SourceError | None]]:
        """Fetch plugins from other repositories, each with its result; see ``_plugin``."""
        before = into.parent / CURRENT
        self._size = sum(_size_of(before / _folder_of(plugin)) for plugin in plugins)
        with ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="plugin") as pool:
            try:
                found = pool.map(lambda plugin: self._plugin(plugin, into, last), plugins)
                return list(zip(plugins, found, strict=True))
            except BaseException:  # Ctrl-C
                self.cancelled.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _plugin(self, plugin: Plugin, into: Path, last: State) -> Fetched | SourceError | None:
        """Fetch a plugin. Returns the result, None if it is current, or the error."""
        where, folder = plugin.where, _folder_of(plugin)
        assert isinstance(where, Elsewhere)
        try:
            protocol = protocol_of(where.url)
            if self._main.url.startswith("https:") and protocol in {"http", "git"}:
                raise SourceError(f"{shown(where.url)} is not encrypted, unlike its marketplace.")
            check_step(where.url, self._main.url)
            part = GitFetcher(where.url, protocol, where.ref, where.folder)
            part.cancelled = self.cancelled
            found = self._fetched(part, folder, into, last)
            if found and self._is_too_much(into / folder, into.parent / CURRENT / folder):
                shutil.rmtree(into / folder)
                raise SourceError(f"all plugins together have more than {MAX_SIZE:,} bytes.")
        except OSError as error:  # other plugins are still fetched
            return SourceError(f"its files cannot be written: {error.strerror}.")
        except SourceError as error:
            if self.cancelled.is_set():
                raise
            return error
        return found

    def _is_too_much(self, new: Path, old: Path) -> bool:
        """Whether a plugin makes all plugins together too large, instead of its old content."""
        more = _size_of(new) - _size_of(old)
        with self._lock:
            if self._size + more > MAX_SIZE:
                return True
            self._size += more
            return False


def _size_of(folder: Path) -> int:
    """The size of all files of a folder; 0 if it is missing."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _folder_of(plugin: Plugin) -> str:
    """The folder of a plugin from another repository."""
    return f"{PLUGINS}/{plugin.name}"


def _parts_of(state: State) -> dict[str, _Part]:
    """The parts of fetched content, by folder; see ``_validators_of``."""
    found = {}
    for name, value in state.validators.items():
        if name.startswith(_PART):
            revision, *notes = value.split("\n")
            found[name.removeprefix(_PART)] = _Part(revision, tuple(notes))
    return found


def _validators_of(parts: Mapping[str, _Part]) -> dict[str, str]:
    """A validator for each part, which has the revision and the notes as lines."""
    return {_PART + folder: "\n".join((one.revision, *one.notes)) for folder, one in parts.items()}


def _listing(top: Path, location: str) -> Listing:
    """The plugins of a marketplace, or of a repository that is a plugin."""
    if (document := read_json(top / LISTING)) is not None:
        return read_listing(document, location)
    if (manifest := read_json(top / MANIFEST)) is not None:
        return only_plugin(manifest, location)
    raise SourceError(f"{location} is not a marketplace: it has no valid {LISTING}.")


def _collect(
    listing: Listing, into: Path, parts: Container[str], is_cancelled: Callable[[], bool]
) -> tuple[Declared, ...]:
    """Write the ids of all plugins' items, and return their MCP servers."""
    collector, declared = PluginCollector(into, is_cancelled), []
    for plugin in listing.plugins:
        if isinstance(plugin.where, Elsewhere):
            if _folder_of(plugin) not in parts:
                continue
            root = into / _folder_of(plugin)
        else:
            root = into / MAIN / plugin.where
        if root.is_dir() and (servers := collector.add(plugin, root)):
            declared.append(servers)
    (into / IDS).write_bytes(msgspec.json.encode(collector.ids))
    return tuple(declared)
