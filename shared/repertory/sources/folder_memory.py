"""What a source of files read, so that a later process reads only what changed since."""

import os
import time
from stat import S_ISDIR

import msgspec

from repertory.catalogue.item import Item, Kind
from repertory.files import Signature, signature
from repertory.sources.source import Problem

# What changed this recently may change again with the same signature: some file systems count
# times in steps of two seconds.
GRANULARITY = 2_100_000_000  # nanoseconds
# The signature of such a file; no file has it.
CHANGING: Signature = (0, 0, 0, 0)
MISSING = -1  # as the time of a folder
RECENT = -2  # as the time of a folder that may change again at the same time


class KnownItem(msgspec.Struct, frozen=True, array_like=True):
    """An item that was read by an earlier process."""

    id: str
    name: str
    kind: Kind
    path: str
    hash: str  # the start of its metadata hash, before policies

    @classmethod
    def of(cls, item: Item) -> "KnownItem":
        """What is remembered of an item."""
        start = item.metadata_hash()[:16]
        return cls(id=item.id, name=item.name, kind=item.kind, path=item.path, hash=start)


class KnownFile(msgspec.Struct, frozen=True, array_like=True):
    """What was read from a file: its items and problems, and whether it is broken."""

    items: tuple[KnownItem, ...] = ()
    problems: tuple[Problem, ...] = ()
    broken: bool = False


class FolderState(msgspec.Struct, frozen=True, array_like=True):
    """The state of the file system under a source when it was read.

    Attributes:
        folders: The times of each folder, and of what each link leads to, added up; see
            ``changed_at``.
        files: The signature of each file that can change what the source offers.
    """

    folders: dict[str, int] = {}
    files: dict[str, Signature | None] = {}

    def is_current(self) -> bool:
        """Whether nothing has changed since."""
        return all(changed_at(path) == last for path, last in self.folders.items()) and all(
            signature(path) == last for path, last in self.files.items()
        )


class Memory(msgspec.Struct, frozen=True, array_like=True):
    """What a source read, and the state of the file system then.

    Attributes:
        seen: The folders and files.
        known: What was read from each file, by path.
    """

    seen: FolderState = FolderState()
    known: dict[str, KnownFile] = {}

    def without(self, items: frozenset[str]) -> "Memory":
        """This memory without the files of some items, which are to be read again."""
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
    """A number that changes with a folder's list of files or its rights; ``MISSING`` without one.

    It is the sum of both of its times, in nanoseconds: a program may set one of them back, and
    then the other one changes.
    """
    times = _times(folder)
    return sum(times) if times else MISSING


def settled_time(folder: str) -> int:
    """As ``changed_at``, and ``RECENT`` if it has just changed."""
    times = _times(folder)
    if times and _are_recent(times):
        return RECENT
    return sum(times) if times else MISSING


def settled_signature(path: str) -> Signature | None:
    """As ``signature``, and ``CHANGING`` if the file has just changed."""
    current = signature(path)
    return CHANGING if current is not None and _are_recent(current[:2]) else current


def _times(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)  # noqa: PTH116 - speed
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_ctime_ns) if S_ISDIR(status.st_mode) else None


def _are_recent(times: tuple[int, int]) -> bool:
    """Whether the same times may be those of another change, too.

    A time far in the future is none: a change now sets the other one.
    """
    now = time.time_ns()
    return any(abs(now - one) <= GRANULARITY for one in times)
