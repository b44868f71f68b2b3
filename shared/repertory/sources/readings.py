"""What the files of a folder offer, remembered: a file that did not change is not read again."""

import os
import time
from collections.abc import Callable, Iterable

import msgspec

from repertory.catalogue.item import Item
from repertory.sources.reading.files import Found
from repertory.sources.source import Problem

# A file that changed so lately may change once more without a sign of it: some file systems count
# times in steps of two seconds.
GRANULARITY = 2_100_000_000  # nanoseconds

Signature = tuple[int, int, int, int]  # the times of the last changes, the size, the file's number


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one file offers.

    Attributes:
        items: Its items; none where its author hides them.
        problems: What is wrong with it.
        broken: Whether it should offer something that could not be read, so that what is indexed
            of it is to be kept.
    """

    items: list[Item] = []
    problems: list[Problem] = []
    broken: bool = False


class _Kept(msgspec.Struct, frozen=True):
    signature: Signature | None  # None where the file is to be read again whatever it is now
    reading: Reading


class Readings:
    """The readings of one source's files. For one scan at a time.

    Of a file that did not change, the very same items come back, so that what was computed of them
    is still known. Broken files are always read again: what broke them may not be in them.
    """

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def of(self, files: Iterable[Found], read: Callable[[Found], Reading]) -> list[Reading]:
        """What each of the files offers now; files that are not among them are forgotten.

        Args:
            files: The files.
            read: Reads one. What it returns must depend on that file alone.
        """
        kept = {file.path: self._one(file, read) for file in files}
        self._kept = kept
        return [one.reading for one in kept.values()]

    def _one(self, file: Found, read: Callable[[Found], Reading]) -> _Kept:
        now = time.time_ns()
        signature = _signature(file.path)
        before = self._kept.get(file.path)
        if before and signature and before.signature == signature:
            return before
        reading = read(file)
        if before and reading == before.reading:
            reading = before.reading
        lasts = signature and not reading.broken and max(signature[:2]) < now - GRANULARITY
        return _Kept(signature if lasts else None, reading)


def _signature(path: str) -> Signature | None:
    """What cannot stay as it is when the file changes; None where there is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - speed
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
