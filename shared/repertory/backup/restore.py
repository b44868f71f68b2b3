"""``repertory restore``: rebuilds an index from a backup, without embedding anything."""

import re
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

from repertory.backup import files, frames
from repertory.backup.archive import Archive, Stored, require_room
from repertory.backup.create import cache_model, own_collections
from repertory.compose import Parts
from repertory.data_directory import AUDIT, SERVERS, WORKSPACES
from repertory.errors import StoreBusyError, StoreCorruptError, StoreError, UsageError
from repertory.index.cache import Vector
from repertory.index.layout import CHUNK, checked_name
from repertory.index.vectors import Collection, Point
from repertory.indexing.collection_names import generation_of, is_index, is_newer, namespace_of
from repertory.remote.running import claimed, notes
from repertory.system.files import is_there, make_directory, unwritable
from repertory.system.progress import Progress

T = TypeVar("T")

_GENERATION = re.compile(r"_g\d+\Z")
_KIND = {True: "a team's server", False: "an embedded index"}  # by ``is_team``


def check(parts: Parts, archive: Archive, step: Progress, *, force: bool) -> None:
    """Check that a backup can be restored, without changing anything.

    Args:
        parts: The index to restore into.
        archive: The backup.
        step: Called with the progress.
        force: Whether an existing index may be replaced.

    Raises:
        UsageError: The backup does not fit this index, or an index exists already.
        StoreBusyError: A server is running.
        StoreCorruptError: The backup is damaged.
        StoreError: The store is unavailable, or its disk is full.
    """
    manifest = archive.manifest
    _check_names(archive)
    if manifest.is_team != parts.is_team:
        theirs, ours = _KIND[manifest.is_team], _KIND[parts.is_team]
        raise UsageError(f"{archive.path} is a backup of {theirs}, and this is {ours}.")
    namespace = parts.settings.values.namespace
    if parts.settings.values.qdrant_url and manifest.namespace != namespace:
        raise UsageError(
            f"{archive.path} is of the namespace {manifest.namespace}, and this is {namespace}; "
            f"give --namespace {manifest.namespace}."
        )
    if any(is_newer(name) for name in manifest.collections):
        raise UsageError(f"{archive.path} is of a newer release ({manifest.version}).")
    _check_idle(parts)
    data = parts.settings.data_dir
    held = own_collections(parts) or [name for name in manifest.files if is_there(data / name)]
    if held and not force:
        raise UsageError(
            f"There is an index already, with {held[0]}; give --force to replace it, or another "
            "--data-dir."
        )
    archive.verify(step)
    _check_content(archive)
    make_directory(data)
    require_room(data, manifest.size)


def restore(parts: Parts, archive: Archive, step: Progress) -> None:
    """Restore a backup that passed ``check``.

    A collection whose name is taken becomes the next generation. Aliases are set last, so that
    searches see either the old or the complete new index. The audit log is restored only if there
    is no audit log.

    Raises:
        StoreBusyError: A server was started after the check; nothing was changed.
        StoreError: The store is unavailable or full; restore again with ``--force``.
    """
    _check_idle(parts)
    manifest, data = archive.manifest, parts.settings.data_dir
    logs = [name for name in manifest.files if name.startswith(f"{AUDIT}/")]
    if not any((data / AUDIT).glob("*.jsonl")):
        # Restored first, so that a failure of the rest can be logged. Rotated files come before
        # the current one.
        for name in sorted(logs, reverse=True):
            _restore_file(parts, archive, name)
    renamed = {
        name: _restored(parts, archive, name, step)
        for name, stored in manifest.collections.items()
        if stored.count
    }
    for slug in manifest.caches:
        _restore_cache(parts, archive, slug, step)
    found = [name for name in manifest.files if name not in logs]
    for number, name in enumerate(found, 1):
        _restore_file(parts, archive, name)
        step("Files", number, len(found))
    for seen in (data / WORKSPACES).glob("*.seen"):  # they describe the replaced indexes
        seen.unlink(missing_ok=True)
    for alias, target in manifest.aliases.items():
        if target in renamed:
            parts.store.set_alias(alias, renamed[target])


def _check_names(archive: Archive) -> None:
    """Refuse names that Repertory does not write.

    Raises:
        StoreCorruptError: A name is invalid.
    """
    manifest = archive.manifest
    names = [*manifest.collections, *manifest.aliases, *manifest.caches]
    try:
        for name in names:
            checked_name(name)
    except StoreError as error:
        raise StoreCorruptError(f"{archive.path} is damaged: {error}") from error
    namespaces = {namespace_of(name) for name in manifest.collections}
    is_foreign = manifest.is_team and not namespaces <= {manifest.namespace}
    if is_foreign or not all(map(files.is_known, manifest.files)):
        raise StoreCorruptError(f"{archive.path} is damaged: it has a part that no backup has.")


def _check_idle(parts: Parts) -> None:
    """Refuse to restore while a server uses the index.

    Raises:
        StoreBusyError: A server is running.
        StoreError: The data directory cannot be read.
    """
    if parts.is_team:
        if holder := parts.coordination.lease.holders().holder:
            raise StoreBusyError(f"{holder} is watching; stop `repertory watch` first.")
        return
    running = [note.url for note in notes(parts.settings)]
    servers = parts.settings.data_dir / SERVERS
    places: list[Path] = []
    try:
        with suppress(FileNotFoundError):
            places = [one for one in servers.iterdir() if one.suffix == ".json"]
    except OSError as error:
        raise unwritable(servers, error) from error
    for place in places:
        with claimed(place) as is_free:  # a PID may be reused, so test the lock
            if not is_free:
                where = f" at {running[0]}" if running else ""
                raise StoreBusyError(f"A server{where} uses the data directory; stop it first.")


def _check_content(archive: Archive) -> None:
    """Decode all collections and caches, to be sure that a store will accept them.

    Raises:
        StoreCorruptError: An entry is invalid, or counts or dimensions differ from the manifest.
    """
    shown, manifest = str(archive.path), archive.manifest
    for name, one in manifest.collections.items():
        with archive.part(one.part) as read:
            _check_count(one, (point.vector for point in frames.points(read, shown)), shown, name)
    for name, one in manifest.caches.items():
        with archive.part(one.part) as read:
            _check_count(one, (vector for _, vector in frames.vectors(read, shown)), shown, name)


def _check_count(stored: Stored, vectors: Iterable[Vector], shown: str, name: str) -> None:
    count = 0
    for vector in vectors:
        count += 1
        if len(vector) != stored.dimension:
            raise StoreCorruptError(f"{shown} is damaged: {name} has vectors of other lengths.")
    if count != stored.count:
        raise StoreCorruptError(f"{shown} is damaged: {name} has {count:,} entries.")


def _restored(parts: Parts, archive: Archive, name: str, step: Progress) -> str:
    """Restore a collection and return its new name."""
    stored, store = archive.manifest.collections[name], parts.store
    target = _free(name, store.collections())
    if target in store.collections():
        store.drop(target)
    parts.coordination.snapshots.drop(target)  # left by an earlier collection of that name
    parts.coordination.deltas.drop(target)
    with store.create(target, stored.dimension) as collection, archive.part(stored.part) as read:
        _write(collection, frames.points(read, str(archive.path)), name, stored.count, step)
    return target


def _write(
    collection: Collection, points: Iterator[Point], name: str, count: int, step: Progress
) -> None:
    done = 0
    for batch in _batches(points):
        collection.upsert(batch)
        done += len(batch)
        step(name, done, count)
    collection.optimize()


def _batches(values: Iterator[T]) -> Iterator[list[T]]:
    """The values in lists of up to ``CHUNK``."""
    while batch := list(islice(values, CHUNK)):
        yield batch


def _free(name: str, taken: Iterable[str]) -> str:
    """The name for a restored collection: that of the next generation if its own is taken."""
    if name not in taken or not is_index(name):
        return name
    beginning = _GENERATION.sub("_g", name)
    same = [one for one in taken if _GENERATION.sub("_g", one) == beginning]
    return f"{beginning}{max(map(generation_of, same)) + 1}"


def _restore_file(parts: Parts, archive: Archive, name: str) -> None:
    with archive.part(name) as read:
        files.restore(parts.settings.data_dir, name, read)


def _restore_cache(parts: Parts, archive: Archive, slug: str, step: Progress) -> None:
    stored = archive.manifest.caches[slug]
    with (
        closing(parts.cache(cache_model(slug, stored.dimension))) as cache,
        archive.part(stored.part) as read,
    ):
        done = 0
        for batch in _batches(frames.vectors(read, str(archive.path))):
            cache.put(dict(batch))
            done += len(batch)
            step("Vectors", done, stored.count)
