"""The results of reading a source of files, so that a later process reads only changed files."""

import os
import time
from stat import S_ISDIR

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.sources.source import Problem
from repertory.system.files import Signature, signature

# A file changed this recently may change again with the same signature, because some file systems
# store times in steps of two seconds.
GRANULARITY = 2_100_000_000  # nanoseconds
# Stands for the signature of such a file; equal to no real one.
CHANGING: Signature = (-1, 0, 0, 0)
MISSING = -1  # stands for the time of a missing folder
RECENT = -2  # stands for the time of a folder that may change again with the same time


class KnownItem(msgspec.Struct, frozen=True, array_like=True):
    """An item read by an earlier process."""

    id: str
    name: str
    kind: Kind
    path: str
    hash: str  # the first digits of its metadata hash, before policies

    @classmethod
    def of(cls, item: Item) -> "KnownItem":
        """The remembered fields of an item."""
        start = item.metadata_hash()[:16]
        return cls(id=item.id, name=item.name, kind=item.kind, path=item.path, hash=start)


class KnownFile(msgspec.Struct, frozen=True, array_like=True):
    """A file read by an earlier process: its items and problems, and whether it is broken."""

    items: tuple[KnownItem, ...] = ()
    problems: tuple[Problem, ...] = ()
    broken: bool = False


class FolderState(msgspec.Struct, frozen=True, array_like=True):
    """The state of the file system under a source when it was read.

    Attributes:
        folders: The times of each folder and each link's target; see ``changed_at``.
        files: The signature of each file that can change the source's items.
        problems: The problems that are not of a file with items; None if the source was not read.
    """

    folders: dict[str, int] = {}
    files: dict[str, Signature | None] = {}
    problems: tuple[Problem, ...] | None = None

    def is_current(self) -> bool:
        """Whether nothing has changed since."""
        return all(changed_at(path) == last for path, last in self.folders.items()) and all(
            signature(path) == last for path, last in self.files.items()
        )


class Memory(msgspec.Struct, frozen=True, array_like=True):
    """The files that a source read, and the state of the file system at that time.

    Attributes:
        seen: The state of the folders and files.
        known: The results for each file, by path.
    """

    seen: FolderState = FolderState()
    known: dict[str, KnownFile] = {}

    def without(self, items: frozenset[str]) -> "Memory":
        """This memory with the files of some items marked as changed, so that they are reread."""
        if not items:
            return self
        files = {
            path: CHANGING
            if (known := self.known.get(path)) and items.intersection(one.id for one in known.items)
            else last
            for path, last in self.seen.files.items()
        }
        return Memory(FolderState(self.seen.folders, files), self.known)


def changed_at(folder: str) -> int:
    """A number that changes with a folder's list of files or its permissions.

    It is the sum of mtime and ctime in nanoseconds, because setting mtime back changes ctime.
    ``MISSING`` if there is no such folder.
    """
    times = _times(folder)
    return sum(times) if times else MISSING


def settled_time(folder: str) -> int:
    """Like ``changed_at``, but ``RECENT`` if the folder has just changed."""
    times = _times(folder)
    if times and _are_recent(times):
        return RECENT
    return sum(times) if times else MISSING


def settled_signature(path: str) -> Signature | None:
    """Like ``signature``, but ``CHANGING`` if the file has just changed."""
    current = signature(path)
    return CHANGING if current is not None and _are_recent(current[:2]) else current


def _times(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)  # noqa: PTH116 - speed
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_ctime_ns) if S_ISDIR(status.st_mode) else None


def _are_recent(times: tuple[int, int]) -> bool:
    """Whether another change may result in the same times.

    A time far in the future does not count, because a change now would change the other time.
    """
    now = time.time_ns()
    return any(abs(now - one) <= GRANULARITY for one in times)
