"""The files of the data directory that belong in a backup because they cannot be rebuilt.

Not included: collections and the vector cache of a team, which are separate parts; keyword
snapshots, weights and fetched content, which can be rebuilt; notes of running servers.
"""

import contextlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from repertory.backup.archive import CHUNK
from repertory.data_directory import (
    AUDIT,
    CONNECTED,
    KEYS,
    MODELS,
    REVIEWS,
    SIGN_INS,
    STATUS,
    TEAM_KEYS,
    TRUSTED,
    VECTORS,
    WORKSPACES,
)
from repertory.errors import StoreCorruptError, StoreError
from repertory.system.files import flush_to_disk, make_private, replacing

# Facts about workspaces, and decisions of people. The patterns match safe relative paths only.
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
_PLAIN = re.compile(
    rf"{re.escape(TRUSTED)}|{re.escape(TEAM_KEYS)}"
    rf"|(?:{KEYS}|{WORKSPACES}|{STATUS}|{CONNECTED})/{_NAME}\.json"
    rf"|{MODELS}/calibrations/{_NAME}\.json|{AUDIT}/audit\.jsonl(?:\.[0-9]{{1,4}})?"
)
_DATABASE = re.compile(rf"{re.escape(VECTORS)}|{REVIEWS}/{_NAME}\.sqlite")
_SIGN_IN = re.compile(rf"{re.escape(SIGN_INS)}/{_NAME}\.json")
_KINDS = {
    VECTORS: "cached vectors",
    REVIEWS: "approvals",
    KEYS: "keys",
    TEAM_KEYS: "keys",
    TRUSTED: "trusted configurations",
    AUDIT: "audit log",
    SIGN_INS: "sign-ins",
    MODELS: "calibrations",
}
_BUSY_S = 30.0  # total time to wait while another process writes a database
_ATTEMPT_S = 1.0  # time per attempt within SQLite, where Ctrl-C has no effect
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_known(name: str) -> bool:
    """Whether a backup may have a file of this name. If so, the name is a safe relative path."""
    return any(one.fullmatch(name) for one in (_PLAIN, _DATABASE, _SIGN_IN))


def is_sign_in(name: str) -> bool:
    """Whether a file holds tokens of MCP servers."""
    return bool(_SIGN_IN.fullmatch(name))


def kind(name: str) -> str:
    """The kind of a file, for people."""
    folder = name.partition("/")[0]
    return _KINDS.get(folder, "notes of directories and hosts")


def names(data: Path, *, with_sign_ins: bool) -> list[str]:
    """The files to back up, as paths relative to the data directory, with ``/``.

    Symbolic links are skipped, because their targets do not belong to Repertory.

    Raises:
        StoreError: The data directory cannot be read.
    """
    found = []
    try:
        for path in (*data.glob("*"), *data.glob("*/*"), *data.glob(f"{MODELS}/calibrations/*")):
            name = path.relative_to(data).as_posix()
            if is_known(name) and path.is_file() and not path.is_symlink():
                found.append(name)
    except OSError as error:
        raise StoreError(f"{data} cannot be read: {error.strerror}.") from error
    return sorted(name for name in found if with_sign_ins or not is_sign_in(name))


@contextlib.contextmanager
def readable(data: Path, name: str, folder: Path) -> Iterator[Path]:
    """Yield a path from which a consistent version of a file can be read.

    For a database this is a copy made by SQLite, which works while others write. For any other file
    it is the file itself, because files are replaced and never changed in place.

    Args:
        data: The data directory.
        name: The path of the file in the data directory.
        folder: A private folder for the copy, because the disk of the data directory may be full or
            read-only.

    Raises:
        OSError: The folder cannot be written.
        StoreCorruptError: The database is damaged; the message says that it is left out.
        StoreError: The database cannot be copied now.
    """
    if not _DATABASE.fullmatch(name):
        yield data / name
        return
    copy = folder / "copy"
    try:
        _copy(data / name, copy)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, in chunks.

    Raises:
        StoreError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error


def restore(data: Path, name: str, read: Callable[[int], bytes]) -> None:
    """Replace a file atomically. Only its owner can read it.

    Raises:
        StoreError: The file cannot be written.
    """
    path = data / name
    try:
        make_private(path.parent)
        with replacing(path) as file:
            while chunk := read(CHUNK):
                file.write(chunk)
            flush_to_disk(file)
            if _DATABASE.fullmatch(name):
                for suffix in ("-wal", "-shm"):  # SQLite would apply an old log to the new file
                    path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}.") from error


def _copy(path: Path, copy: Path) -> None:
    deadline = time.monotonic() + _BUSY_S

    def check(status: int, *_: int) -> None:
        if status in _BUSY and time.monotonic() > deadline:  # SQLite would wait forever
            raise sqlite3.OperationalError("another process writes it")

    try:
        with (
            contextlib.closing(sqlite3.connect(path, timeout=_ATTEMPT_S)) as source,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target, progress=check)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        # SQLite cannot open the cache on a read-only disk, because the cache uses a WAL file.
        if path.name == VECTORS and code in {*_DAMAGED, sqlite3.SQLITE_CANTOPEN}:
            raise StoreCorruptError(
                f"The vector cache {path} cannot be read ({error}), so it is left out: after a "
                "restore, texts that are in no index are embedded again."
            ) from error
        if code in _DAMAGED:
            raise StoreCorruptError(
                f"{path} is damaged ({error}), so it is left out; see `repertory doctor`."
            ) from error
        raise StoreError(
            f"{path} cannot be copied to {copy.parent.parent} ({error}); try again, or name a "
            "file on another disk."
        ) from error
