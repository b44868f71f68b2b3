"""``repertory backup``: writes all data that cannot be rebuilt into one file."""

import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from repertory.backup import files, frames
from repertory.backup.archive import FORMAT, Manifest, Stored, Writer, writing
from repertory.compose import Parts
from repertory.embedding.models import Model
from repertory.errors import StoreBusyError, StoreCorruptError, StoreError, UsageError
from repertory.index.cache import Vector
from repertory.index.vectors import Point
from repertory.indexing.collection_names import namespace_of
from repertory.system.files import is_there
from repertory.system.progress import Progress

if TYPE_CHECKING:  # optional, and slow
    from repertory.index.qdrant_cache import QdrantVectorCache

CACHES = "vectors"  # part of the name of a team's vector cache
STEP = 500  # points between two progress reports


def create(
    parts: Parts, path: Path, step: Progress, *, with_sign_ins: bool, force: bool
) -> tuple[Manifest, list[str]]:
    """Back up an index, even while its server runs.

    Args:
        parts: The index.
        path: The file to write.
        step: Called with the progress.
        with_sign_ins: Whether to include the tokens of MCP servers.
        force: Whether to replace an existing file.

    Returns:
        The manifest, and a sentence about each damaged database that was left out.

    Raises:
        UsageError: The file exists, its path is invalid, or there is nothing to back up.
        StoreError: Something cannot be read or written.
    """
    _check_target(path, force=force)
    collections = own_collections(parts)
    data = parts.settings.data_dir
    names = files.names(data, with_sign_ins=with_sign_ins)
    if not collections and not names:
        raise UsageError(f"There is nothing to back up in {data}; see `repertory doctor`.")
    aliases = parts.store.aliases()
    with writing(path) as writer:
        stored = _collections(parts, collections, writer, step)
        if replaced := {*collections} & {*aliases.values()} - {*stored}:
            raise StoreError(f"{min(replaced)} was replaced during the backup; try again.")
        caches = _caches(parts, writer, step)
        left_out = _files(data, names, writer, step)
        manifest = Manifest(
            format=FORMAT,
            version=version("repertory"),
            made=time.time(),
            is_team=parts.is_team,
            namespace=parts.settings.values.namespace,
            collections=stored,
            caches=caches,
            aliases={name: target for name, target in sorted(aliases.items()) if target in stored},
            parts=writer.parts,
        )
        writer.finish(manifest)
    return manifest, left_out


def _check_target(path: Path, *, force: bool) -> None:
    """Check that a backup may be written to a path.

    Raises:
        UsageError: The path is a file and ``force`` is not set, is something other than a file, or
            its folder is missing.
    """
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        if not path.parent.is_dir():
            raise UsageError(f"There is no folder {path.parent}.") from error
        return
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; name another file.") from error
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path} is a folder, a link or a device; name a file.")
    if not force:
        raise UsageError(f"There is a file {path} already; name another, or give --force.")


def own_collections(parts: Parts) -> list[str]:
    """The collections to back up: all of a data directory, or a namespace's in Qdrant."""
    found = parts.store.collections()
    if not parts.settings.values.qdrant_url:
        return found
    namespace = parts.settings.values.namespace
    own = [name for name in found if namespace_of(name) == namespace]
    return [name for name in own if not name.startswith(f"{namespace}_{CACHES}_")]


def cache_model(slug: str, dimension: int = 1) -> Model:
    """A model with only the fields that its vector cache needs."""
    return Model(id="", slug=slug, dimension=dimension, max_tokens=0)


def _files(data: Path, names: Sequence[str], writer: Writer, step: Progress) -> list[str]:
    """Write files. Called after the collections, so that the vector cache covers their texts.

    A damaged database is left out instead of failing every backup. Files that were removed since
    are left out as well.

    Returns:
        A sentence about each damaged database.
    """
    left_out = []
    for number, name in enumerate(names, 1):
        if not is_there(data / name):
            continue
        try:
            with files.readable(data, name, writer.place) as path:
                writer.add(name, files.chunks(path))
        except StoreCorruptError as error:
            left_out.append(str(error))
        step("Files", number, len(names))
    return left_out


class _Tally:
    """Counts the vectors written for a collection or a cache, and reports progress."""

    def __init__(self, name: str, step: Progress) -> None:
        self.count = self.dimension = self.total = 0
        self._name = name
        self._step = step

    def add(self, vector: Vector) -> None:
        self.count += 1
        self.dimension = len(vector)
        if not self.count % STEP:
            self._step(self._name, self.count, max(self.count, self.total))

    def stored(self, part: str) -> Stored:
        return Stored(part=part, count=self.count, dimension=self.dimension)


def _collections(
    parts: Parts, names: Iterable[str], writer: Writer, step: Progress
) -> dict[str, Stored]:
    """Write collections, except those that `repertory clean` removes during the backup."""
    stored = {}
    for name in names:
        if name not in parts.store.collections():
            continue
        tally, part = _Tally(name, step), f"collections/{name}"
        writer.add(part, frames.of_points(_points(parts, name, tally)))
        stored[name] = tally.stored(part)
    return stored


def _points(parts: Parts, name: str, tally: _Tally) -> Iterator[Point]:
    """The points of a collection, read through the running server if one has it open."""
    try:
        collection = parts.store.open(name)
    except StoreBusyError:
        from repertory.backup import server_points  # noqa: PLC0415 - rarely needed

        for point in server_points.points(parts.settings, name):
            tally.add(point.vector)
            yield point
        return
    with collection:
        tally.total = collection.count()
        for point in collection.points():
            tally.add(point.vector)
            yield point


def _caches(parts: Parts, writer: Writer, step: Progress) -> dict[str, Stored]:
    """Write the vector caches of a team. An embedded index has its cache in a file."""
    if not parts.is_team:
        return {}
    from repertory.index.qdrant_cache import QdrantVectorCache  # noqa: PLC0415 - optional

    stored = {}
    prefix = f"{parts.settings.values.namespace}_{CACHES}_"
    for name in (one for one in parts.store.collections() if one.startswith(prefix)):
        slug = name.removeprefix(prefix)
        tally, part = _Tally(name, step), f"caches/{slug}"
        with closing(parts.cache(cache_model(slug))) as cache:
            assert isinstance(cache, QdrantVectorCache)
            writer.add(part, frames.of_vectors(_vectors(cache, tally)))
        stored[slug] = tally.stored(part)
    return stored


def _vectors(cache: "QdrantVectorCache", tally: _Tally) -> Iterator[tuple[bytes, Vector]]:
    for key, vector in cache.stored():
        tally.add(vector)
        yield key, vector
