"""What a source read, so that a later process reads only what changed since."""

import os
import time

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


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """The state of the file system under a source when it was read.

    Attributes:
        folders: When each folder was last changed, in nanoseconds; see ``changed_at``.
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

    seen: Seen = Seen()
    known: dict[str, KnownFile] = {}

    def without(self, items: frozenset[str]) -> "Memory":
        """This memory without the files of some items, which are to be read again."""
        files = {
            path: CHANGING
            if (known := self.known.get(path)) and items.intersection(one.id for one in known.items)
            else last
            for path, last in self.seen.files.items()
        }
        return Memory(Seen(self.seen.folders, files), self.known)


def changed_at(folder: str) -> int:
    """When the list of a folder's files last changed, in nanoseconds; ``MISSING`` without one."""
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - speed
    except (OSError, ValueError):
        return MISSING


def settled_time(folder: str) -> int:
    """As ``changed_at``, and ``RECENT`` if it has just changed."""
    changed = changed_at(folder)
    return RECENT if changed >= time.time_ns() - GRANULARITY else changed


def settled_signature(path: str) -> Signature | None:
    """As ``signature``, and ``CHANGING`` if the file has just changed."""
    current = signature(path)
    is_recent = current is not None and max(current[:2]) >= time.time_ns() - GRANULARITY
    return CHANGING if is_recent else current
