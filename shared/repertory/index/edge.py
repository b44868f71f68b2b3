"""The embedded vector store: Qdrant's engine in this process, one shard on disk per collection.

    <directory>/collections/<name>/         the shard
    <directory>/collections/<name>.lock     held while it is open (.holder names the holder)
    <directory>/collections/.copy-<name>    a copy whose search graph is being built
    <directory>/aliases/<alias>             the name of the collection it points to

Opening a shard twice damages it, so our own lock is taken first. All users of a collection in this
process share its shard.
"""

import contextlib
import shutil
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from typing_extensions import override

from repertory.data_directory import ALIASES, COLLECTIONS
from repertory.errors import StoreBusyError, StoreCorruptError, StoreError
from repertory.index import layout
from repertory.index.edge_collection import EdgeCollection
from repertory.index.edge_errors import translated
from repertory.index.edge_files import exists, recover, replaced, require_room, sync
from repertory.index.edge_shard import OpenShard, make_shard
from repertory.index.lock import StoreLock
from repertory.index.vectors import VectorStore
from repertory.system.files import write_atomically


class EdgeStore(VectorStore):
    """The collections under one directory. Threads may share it.

    An open collection can be opened again only by the same store, so a process must use one store
    per directory.
    """

    def __init__(self, directory: Path, timeout: float = 5.0) -> None:
        """Use a directory, which is created by the first write.

        Args:
            directory: The directory of collections and aliases.
            timeout: How many seconds to wait for another process before ``StoreBusyError``.
        """
        self._collections = directory / COLLECTIONS
        self._aliases = directory / ALIASES
        self._timeout = timeout
        self._shards: dict[str, OpenShard] = {}  # the open ones, by collection
        self._guard = threading.RLock()  # guards the shards and their users
        self._opening: dict[str, threading.Lock] = {}  # by collection

    @override
    def collections(self) -> list[str]:
        listed = {path.name for path in _listed(self._collections) if path.is_dir()}
        return sorted(listed | replaced(self._collections))

    @override
    def create(self, name: str, dimension: int) -> EdgeCollection:
        """Create an empty collection and open it.

        It is first created under another name, so that the remains of a crash are not mistaken for
        a collection. The next attempt removes them.
        """
        path = self._path(name)
        taken = StoreError(
            f"The collection {name} already exists: try again if another process just created it."
        )
        with self._alone(name):
            if name in self._shards:
                raise taken
            with self._locked(path) as lock:
                if path.exists():
                    raise taken
                require_room(self._collections)
                unfinished = self._collections / f".new-{name}"
                with translated(path):
                    shutil.rmtree(unfinished, ignore_errors=True)
                    unfinished.mkdir(mode=0o700)
                    make_shard(unfinished, dimension)
                    unfinished.replace(path)
                    sync(self._collections)
                    self._sweep()
                return self._handle(OpenShard(path, lock))

    @override
    def open(self, name: str) -> EdgeCollection:
        path = self._path(name)
        with self._alone(name):
            with self._guard:
                if shard := self._shards.get(name):
                    return self._handle(shard)
            if exists(path):
                with self._locked(path) as lock:
                    if path.is_dir():  # check again, because the last holder may have dropped it
                        return self._handle(OpenShard(path, lock))
                    lock.release()
        raise StoreError(f"There is no collection {name}: index first.")

    @override
    def drop(self, name: str) -> None:
        path = self._path(name)
        if not exists(path):
            return
        if name in self._shards:  # this process holds the lock and could not take it again
            raise StoreBusyError(f"{path} is in use by this process: close it first.")
        with self._locked(path) as lock, translated(path):
            for alias in _listed(self._aliases):
                if alias.read_text(encoding="utf-8", errors="replace") == name:
                    alias.unlink()
            dropped = self._collections / f".old-{name}"
            shutil.rmtree(dropped, ignore_errors=True)
            if path.is_dir():
                path.replace(dropped)
                shutil.rmtree(dropped)
            lock.release()

    @override
    def alias(self, name: str) -> str | None:
        path = self._aliases / layout.checked_name(name)
        try:
            target = path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None
        except NotADirectoryError as exc:
            raise StoreError(
                f"The data directory {self._aliases.parent} is a file; choose another with "
                "--data-dir or REPERTORY_DATA_DIR."
            ) from exc
        except OSError as exc:
            raise StoreCorruptError(f"The alias {path} cannot be read: {exc}.") from exc
        return target if target in self.collections() else None

    @override
    def aliases(self, names: Iterable[str] | None = None) -> dict[str, str]:
        if names is None:
            names = sorted(path.name for path in _listed(self._aliases) if path.is_file())
        return {name: target for name in names if (target := self.alias(name))}

    @override
    def set_alias(self, name: str, collection: str) -> None:
        path = self._aliases / layout.checked_name(name)
        if collection not in self.collections():
            raise StoreError(f"There is no collection {collection} for {name} to point at.")
        with translated(path):
            write_atomically(path, collection.encode(), is_durable=True)
            sync(self._aliases)

    @override
    @contextlib.contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        usual, self._timeout = self._timeout, seconds
        try:
            yield
        finally:
            self._timeout = usual

    def _handle(self, shard: OpenShard) -> EdgeCollection:
        """Add a user of a shard."""
        collection = EdgeCollection(shard, self._release)
        with self._guard:
            shard.users.add(collection)
            self._shards[collection.name] = shard
        return collection

    def _release(self, collection: EdgeCollection) -> None:
        """Remove a user; the last one closes the shard."""
        with self._guard:
            shard = self._shards.get(collection.name)
            if shard is None or collection not in shard.users:
                return
            shard.users.remove(collection)
            if shard.users:
                shard.flush()
            else:
                del self._shards[collection.name]
                shard.close()

    def _sweep(self) -> None:
        """Remove the remains of processes that ended while they created or dropped a collection."""
        for pattern in (".new-*", ".old-*", ".copy-*"):
            for remains in self._collections.glob(pattern):
                path = remains.with_name(remains.name.partition("-")[2])
                with contextlib.suppress(StoreError):  # the process is still running
                    lock = StoreLock(path, timeout=0)
                    shutil.rmtree(remains, ignore_errors=True)
                    lock.release()

    @contextlib.contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Prevent other threads from opening this collection; others are not affected."""
        with self._guard:
            opening = self._opening.setdefault(name, threading.Lock())
        with opening:
            yield

    def _path(self, name: str) -> Path:
        return self._collections / layout.checked_name(name)

    @contextlib.contextmanager
    def _locked(self, path: Path) -> Iterator[StoreLock]:
        """The lock of a collection, released only if the block fails."""
        lock = StoreLock(path, self._timeout)
        try:
            recover(path)
            yield lock
        except BaseException:
            lock.release()
            raise


def _listed(directory: Path) -> list[Path]:
    """The files of a directory without hidden ones; empty if the directory is missing."""
    try:
        return [path for path in directory.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise StoreError(f"{directory} cannot be read: {exc.strerror}.") from exc
