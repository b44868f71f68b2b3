"""Fetches a marketplace and the plugins that it lists, also from other repositories."""

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
_PART = "part:"  # prefix of the validators with the revisions of parts


class MarketplaceFetcher(Fetcher):
    """Fetches a marketplace.

    Args:
        main: Fetches the marketplace itself, which is a repository or a single document.
    """

    def __init__(self, main: GitFetcher | DocumentFetcher) -> None:
        self.location = main.location
        self._main = main
        self._parts: list[Fetcher] = [main]
        self._lock = threading.Lock()
        self._size = 0

    @property
    def cancelled(self) -> bool:
        """Whether a running fetch should end soon."""
        return self._main.cancelled

    @cancelled.setter
    def cancelled(self, value: bool) -> None:
        with self._lock:
            for part in self._parts:
                part.cancelled = value

    @override
    def key(self) -> Mapping[str, Any]:
        if isinstance(self._main, DocumentFetcher):  # keep: existing folders are named after it
            return {"main": {"document": self._main.url}}
        return {"main": self._main.key()}

    @override
    def fetch(self, into: Path, last: State, *, may_ask: bool) -> Fetched | None:
        before = into.parent / CURRENT
        main = self._fetched(self._main, MAIN, into, last, may_ask=may_ask)
        top = (into if main else before) / MAIN
        listing = _listing(top, self.location)
        notes = [*(main.notes if main else ()), *listing.notes]
        parts = {MAIN: main.revision if main else last.validators[_PART + MAIN]}
        changed = self._fetch_plugins(listing, into, last, parts, notes)
        known = {name: one for name, one in last.validators.items() if name.startswith(_PART)}
        now = {_PART + name: one for name, one in parts.items()}
        if not main and not changed and now == known and tuple(notes) == last.notes:
            return None
        for name in parts:
            if not (into / name).exists():
                (into / name).parent.mkdir(exist_ok=True, mode=0o700)
                shutil.copytree(before / name, into / name, copy_function=shutil.copy)
        declared = _collect(listing, into, parts, lambda: self.cancelled)
        own = {name: one for name, one in last.validators.items() if name not in known}
        validators = {**(main.validators if main else own), **now}
        return Fetched(
            revision=parts[MAIN], validators=validators, notes=tuple(notes), declared=declared
        )

    def _fetched(
        self, part: Fetcher, name: str, into: Path, last: State, *, may_ask: bool = False
    ) -> Fetched | None:
        """Fetch one part into its folder; None, without a folder, if the last one is current."""
        folder = into / name
        folder.mkdir(parents=True, mode=0o700)
        own = msgspec.structs.replace(last, revision=last.validators.get(_PART + name, ""))
        try:
            found = part.fetch(folder, own, may_ask=may_ask)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if found is None:
            folder.rmdir()
        return found

    def _fetch_plugins(
        self, listing: Listing, into: Path, last: State, parts: dict[str, str], notes: list[str]
    ) -> bool:
        """Fetch the plugins from other repositories. Returns whether any is new.

        If one cannot be fetched, its old content is kept.
        """
        wanted = {
            f"{PLUGINS}/{plugin.name}": plugin
            for plugin in listing.plugins
            if isinstance(plugin.where, Elsewhere)
        }
        names = list(wanted)[:MAX_ELSEWHERE]
        if len(wanted) > MAX_ELSEWHERE:
            notes.append(f"Only {MAX_ELSEWHERE} plugins from other repositories were fetched.")
        self._size = 0
        with ThreadPoolExecutor(CONCURRENCY, thread_name_prefix="plugin") as pool:
            try:
                found = list(
                    pool.map(lambda name: self._plugin(name, wanted[name], into, last), names)
                )
            except BaseException:  # Ctrl-C
                self.cancelled = True
                pool.shutdown(cancel_futures=True)
                raise
        for name, one in zip(names, found, strict=True):
            if isinstance(one, SourceError):
                notes.append(f"The plugin {wanted[name].name} was not fetched: {one}")
            if isinstance(one, Fetched):
                parts[name] = one.revision
                notes += [f"The plugin {wanted[name].name}: {note}" for note in one.notes]
            elif revision := last.validators.get(_PART + name):
                parts[name] = revision
        return any(isinstance(one, Fetched) for one in found)

    def _plugin(
        self, name: str, plugin: Plugin, into: Path, last: State
    ) -> Fetched | SourceError | None:
        """Fetch a plugin. Returns the result, None if it is current, or the error."""
        where = plugin.where
        assert isinstance(where, Elsewhere)
        try:
            protocol = protocol_of(where.url)
            if self._main.url.startswith("https:") and protocol in {"http", "git"}:
                raise SourceError(f"{shown(where.url)} is not encrypted, unlike its marketplace.")
            check_step(where.url, self._main.url)
            part = GitFetcher(where.url, protocol, where.ref, where.folder)
            with self._running(part):
                found = self._fetched(part, name, into, last)
            if found and self._is_too_much(into / name):
                shutil.rmtree(into / name)
                raise SourceError(f"all plugins together have more than {MAX_SIZE:,} bytes.")
        except OSError as error:  # other plugins are still fetched
            return SourceError(f"its files cannot be written: {error.strerror}.")
        except SourceError as error:
            if self.cancelled:
                raise
            return error
        return found

    @contextmanager
    def _running(self, part: Fetcher) -> Iterator[None]:
        """Include a part in cancellation while it is fetched."""
        with self._lock:
            part.cancelled = self.cancelled
            self._parts.append(part)
        try:
            yield
        finally:
            with self._lock:
                self._parts.remove(part)

    def _is_too_much(self, folder: Path) -> bool:
        size = sum(path.stat().st_size for path in folder.rglob("*"))
        with self._lock:
            self._size += size
            return self._size > MAX_SIZE


def _listing(top: Path, location: str) -> Listing:
    """The plugins of a marketplace, or of a repository that is a plugin."""
    document = read_json(top / LISTING)
    if document is None and (manifest := read_json(top / MANIFEST)) is not None:
        return only_plugin(manifest, location)
    if document is None:
        raise SourceError(f"{location} is not a marketplace: it has no valid {LISTING}.")
    return read_listing(document, location)


def _collect(
    listing: Listing, into: Path, parts: Iterable[str], is_cancelled: Callable[[], bool]
) -> tuple[Declared, ...]:
    """Write the ids of all plugins' items, and return their MCP servers."""
    collector, declared = PluginCollector(into, is_cancelled), []
    for plugin in listing.plugins:
        if isinstance(plugin.where, Elsewhere):
            if f"{PLUGINS}/{plugin.name}" not in parts:
                continue
            root = into / PLUGINS / plugin.name
        else:
            root = into / MAIN / plugin.where
        if root.is_dir() and (servers := collector.add(plugin, root)):
            declared.append(servers)
    (into / IDS).write_bytes(msgspec.json.encode(collector.ids))
    return tuple(declared)
