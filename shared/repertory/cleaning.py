"""Find and remove unused files in a data directory.

Only files that can be rebuilt are removed: no keys, trust, approvals, usage, chosen paths or
weights, and no vectors of texts. Files that belong to an existing directory, or that a process
uses, are kept. The data directory may hold files of other programs, so files whose names Repertory
would not give are kept, too.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from repertory.backup.work_folder import left_by_backups
from repertory.data_directory import (
    ALIASES,
    COLLECTIONS,
    FETCHED,
    KEYWORDS,
    MODELS,
    SERVERS,
    STATUS,
    WORKSPACES,
)
from repertory.embedding.digests import state_name
from repertory.embedding.model_files import SOURCE, WEIGHTS, Format, source_of
from repertory.embedding.packages import installed_weights
from repertory.errors import StoreBusyError, StoreError
from repertory.index.edge import EdgeStore
from repertory.indexing.collection_names import (
    alias_parts,
    configuration_of,
    is_index,
    is_older,
    sandbox_key,
    sandbox_of,
)
from repertory.project.workspace import SHOWN, Indexed, directory_key, owners
from repertory.remote.running import lock_of, note_path
from repertory.sources.fetched.content import LOCK
from repertory.sources.fetched.users import USERS, used, users_gone
from repertory.system.files import PRIVATE, UNFINISHED, is_gone, read_json, size_on_disk

GRACE_S = 60.0  # newer files are kept: another process may be about to use them

_NOTE = re.compile(r"[0-9a-f]{16}\.json")
_OLD_RECORD = re.compile(r"[0-9a-f]{16}\.seen")  # of 0.2: what a command had read


class Kind(StrEnum):
    """The kinds of files that can be removed."""

    INDEX = "indexes that no directory uses"
    NOTES = "notes about directories that are gone"
    FETCHED = "content from elsewhere that no directory uses"
    GRAPH = "optimised models whose weights are gone"
    SERVER = "notes of servers that have ended"
    LEFTOVER = "unfinished and damaged files"


class Unused(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be removed.

    Attributes:
        kind: Its kind.
        paths: Its files and folders; the first one names it. Some may be missing.
        size: Its disk space in bytes.
        is_busy: Whether a process has it open, so that it must stay.
    """

    kind: Kind
    paths: tuple[Path, ...]
    size: int
    is_busy: bool = False


def find(data: Path, now: float) -> list[Unused]:
    """Find the unused files in a data directory.

    Args:
        data: The data directory; it may be missing.
        now: The time, in seconds since the epoch.

    Raises:
        StoreError: The directory cannot be read.
    """
    try:
        known = owners(data)
        gone = {key: owner for key, owner in known.items() if _is_abandoned(owner, data)}
        return [
            *_indexes(data, known, gone, now),
            *_notes(data, gone),
            *_fetched(data / FETCHED, now),
            *_graphs(data / MODELS),
            *_servers(data / SERVERS),
            *_leftovers(data, now),
        ]
    except OSError as error:
        raise StoreError(f"{data} cannot be read: {error.strerror}.") from error


def remove(data: Path, unused: Iterable[Unused]) -> list[Unused]:
    """Remove unused files, except those that are now busy, and return the removed ones.

    Raises:
        StoreError: Something cannot be removed.
    """
    store, removed = EdgeStore(data, timeout=0.0), []
    for one in unused:
        if one.is_busy:
            continue
        try:
            if one.kind is Kind.INDEX:
                store.drop(one.paths[0].name)
            elif one.kind is Kind.SERVER:
                with FileLock(lock_of(one.paths[0]), timeout=0, mode=PRIVATE):
                    one.paths[0].unlink(missing_ok=True)
            for path in one.paths:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        except (StoreBusyError, Timeout):
            continue
        except OSError as error:
            raise StoreError(f"{one.paths[0]} cannot be removed: {error.strerror}.") from error
        removed.append(one)
    return removed


def _indexes(
    data: Path, known: Mapping[str, Path], gone: Mapping[str, Path], now: float
) -> Iterator[Unused]:
    """The collections that no alias of an existing directory points to."""
    store = EdgeStore(data)
    aliases = {path.name: path.read_text("utf-8") for path in _files(data / ALIASES)}
    used, left = set(), set()  # targets of existing directories, and of others
    for alias, target in aliases.items():
        own, key, configuration = alias_parts(alias)
        if key == configuration_of(target) and not configuration:
            continue  # it only names the newest index of a configuration
        active = aliases.get(own)
        is_old = configuration and active and configuration != configuration_of(active)
        if key in gone or (key not in known and is_older(target)):
            left.add(target)
        elif not is_old or key not in known or _is_served(data, known[key]):
            used.add(target)
    sandboxes = {sandbox_key(one) for one in gone.values()}
    for name in store.collections():
        path = data / COLLECTIONS / name
        sandbox = sandbox_of(name)
        is_unused = sandbox in sandboxes if sandbox else is_index(name)
        if name in used or not is_unused or not (sandbox or name in left or _is_old(path, now)):
            continue
        # Keep the empty lock file. If it were removed, a process that has just opened it would hold
        # a lock that is invisible to another one that makes a collection of this name. Only newer
        # releases of filelock detect that.
        is_busy = _is_locked(path.with_name(f"{name}.lock"))
        yield _unused(Kind.INDEX, path, data / KEYWORDS / f"{name}.keywords", is_busy=is_busy)


def _notes(data: Path, gone: Mapping[str, Path]) -> Iterator[Unused]:
    """The notes about directories that no longer exist."""
    for directory in dict.fromkeys(gone.values()):
        keys = [key for key, owner in gone.items() if owner == directory]
        paths = [
            *(path for key in keys for path in (data / WORKSPACES).glob(f"{key}.*")),
            *(data / STATUS / f"{key}.json" for key in keys),
            *(path for key in keys for path in (data / ALIASES).glob(f"*_{key}*")),
            data / WORKSPACES / f"{directory_key(directory)}.root.json",
            data / WORKSPACES / f"{directory_key(directory)}{SHOWN}",
        ]
        yield _unused(Kind.NOTES, *paths)


def _fetched(store: Path, now: float) -> Iterator[Unused]:
    """The fetched content that no existing directory uses."""
    names = used(store)
    for path in store.glob("*"):
        if path.name != USERS and path.name not in names and _is_old(path, now):
            yield _unused(Kind.FETCHED, path, is_busy=_is_locked(path / LOCK))
    for file in users_gone(store):
        yield _unused(Kind.NOTES, file)


def _graphs(models: Path) -> Iterator[Unused]:
    """The optimised graphs of weights that are gone or have changed."""
    optimised = models / "optimised"
    cached = [path for name in WEIGHTS[Format.ONNX] for path in models.glob(f"*/{name}")]
    weights = [path for path in (*cached, *installed_weights()) if path.is_file()]
    used = {f"{state_name(path)}-" for path in weights}
    for source in optimised.glob(f"*{SOURCE}"):
        try:
            used.add(f"{state_name(Path(os.fsdecode(source.read_bytes())))}-")
        except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a damaged path
            continue
        except OSError:  # the weights cannot be checked now, so they may still be used
            used.add(f"{source.stem}-")
    for path in optimised.glob("*.ort"):
        if not path.name.startswith(tuple(used)):
            yield _unused(Kind.GRAPH, path, source_of(path))


def _servers(servers: Path) -> Iterator[Unused]:
    """The notes of servers that were killed."""
    for path in servers.glob("*.json"):
        if _NOTE.fullmatch(path.name) and not _is_locked(lock_of(path)):
            yield _unused(Kind.SERVER, path)


def _leftovers(data: Path, now: float) -> Iterator[Unused]:
    """Leftovers of interrupted processes, orphaned keyword indexes, and damaged caches."""
    collections = data / COLLECTIONS
    for path in chain(*(collections.glob(f".{kind}-*") for kind in ("new", "old", "copy"))):
        name = path.name.partition("-")[2]
        is_busy = _is_locked(collections / f"{name}.lock")
        yield _unused(Kind.LEFTOVER, path, is_busy=is_busy)
    for path in filter(_is_keywords, (data / KEYWORDS).glob("[!.]*")):
        if not (collections / path.stem).is_dir() and _is_old(path, now):
            yield _unused(Kind.LEFTOVER, path)
    for path in (*data.glob("vectors.sqlite.corrupt-*"), *left_by_backups(data, now)):
        yield _unused(Kind.LEFTOVER, path)
    for path in (data / WORKSPACES).glob("*"):
        if _OLD_RECORD.fullmatch(path.name) or _is_first_record(path):
            yield _unused(Kind.LEFTOVER, path)
    for path in (*_unfinished(data), *(data / MODELS).rglob("*.partial")):
        if _is_old(path, now):
            yield _unused(Kind.LEFTOVER, path)


def _is_first_record(path: Path) -> bool:
    """Whether a file is the record of a run of release 0.1, which this release cannot read."""
    return bool(_NOTE.fullmatch(path.name)) and read_json(path, Indexed) is None


def _unfinished(data: Path) -> Iterator[Path]:
    """The temporary files of interrupted writes, except those of the engine."""
    for place, folders, files in os.walk(data):
        if Path(place) == data:
            folders[:] = [name for name in folders if name not in {COLLECTIONS, FETCHED}]
        yield from (Path(place, name) for name in files if UNFINISHED.fullmatch(name))


def _is_keywords(path: Path) -> bool:
    """Whether a name is that of a keyword index; other programs may use the folder, too."""
    return path.suffix == ".keywords" and is_index(path.stem)


def _unused(kind: Kind, *paths: Path, is_busy: bool = False) -> Unused:
    return Unused(kind=kind, paths=paths, size=sum(map(size_on_disk, paths)), is_busy=is_busy)


def _is_abandoned(directory: Path, data: Path) -> bool:
    """Whether a directory does not exist and has no running server."""
    return is_gone(directory) and not _is_served(data, directory)


def _is_served(data: Path, directory: Path) -> bool:
    return _is_locked(lock_of(note_path(data, directory)))


def _is_locked(lock: Path) -> bool:
    """Whether a process holds a lock."""
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0, mode=PRIVATE):
            return False
    except Timeout:
        return True


def _is_old(path: Path, now: float) -> bool:
    """Whether a path has not changed for a while."""
    try:
        return now - path.stat().st_mtime > GRACE_S
    except FileNotFoundError:  # another process has just removed it
        return False


def _files(folder: Path) -> list[Path]:
    """The visible files of a folder, which may be missing."""
    return [path for path in folder.glob("[!.]*") if path.is_file()]
