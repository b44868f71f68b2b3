"""Folders, watched by the system's own means where it has them.

What is told is a hint and no more: it says which source to look at, not what happened.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable
from typing import Self

import msgspec
from watchdog.events import (
    DirAttribEvent,
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileAttribEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from repertory.sources.folder import FolderSource
from repertory.sources.reading.files import SKIPPED, TEMPORARY
from repertory_watch.filesystems import mounts, silent_type

# Not: files that are opened and closed again, as every scan does.
_TOLD = [
    *(DirAttribEvent, DirCreatedEvent, DirDeletedEvent, DirMovedEvent),
    *(FileAttribEvent, FileClosedEvent, FileCreatedEvent, FileDeletedEvent, FileModifiedEvent),
    FileMovedEvent,
]
_PROBE = "/proc"  # a folder that is there, and that nobody watches

_log = logging.getLogger(__name__)

Noticed = Callable[[str, str], None]


class _Place(msgspec.Struct, frozen=True):
    """Where a source's folder really is now; a source that is one file is watched in its folder."""

    folder: str
    file: str
    device: int
    number: int


class _Watched(FileSystemEventHandler):
    """One source that is watched, and what passes on what is told of it."""

    def __init__(self, source: FolderSource, place: _Place, noticed: Noticed) -> None:
        self.source = source
        self._noticed = noticed
        self.place = place
        self.watch: ObservedWatch | None = None
        self.is_lost = False

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Pass on what may concern the source. Called on the observer's thread."""
        for path in (os.fsdecode(event.src_path), os.fsdecode(event.dest_path)):
            if path == self.place.folder and isinstance(event, DirDeletedEvent):
                self.is_lost = True
            if path and self._concerns(path, is_folder=event.is_directory):
                self._noticed(self.source.name, path)

    def _concerns(self, path: str, *, is_folder: bool) -> bool:
        if self.place.file:
            return path == os.path.join(self.place.folder, self.place.file)  # noqa: PTH118 - speed
        *folders, name = path.removeprefix(self.place.folder).split("/")
        if not SKIPPED.isdisjoint(folders) or name in SKIPPED or name.startswith(TEMPORARY):
            return False
        return is_folder or self.source.concerns(name)


class Folders:
    """The folders of sources. A context manager, for one thread.

    Args:
        noticed: Told the source's name and the path of what may concern it, on another thread.

    Attributes:
        polling: Why a source has to be looked at again and again, by its name.
    """

    def __init__(self, noticed: Noticed) -> None:
        self._noticed = noticed
        self._sources: dict[str, FolderSource] = {}
        self._watched: dict[str, _Watched] = {}
        self._observer: BaseObserver | None = None
        self.polling: dict[str, str] = {}

    def __enter__(self) -> Self:
        logging.getLogger("watchdog.observers.inotify").addFilter(_is_of_use)
        try:
            self._observer = Observer()
            self._observer.start()
        except OSError as error:  # as many instances as the system allows are in use
            _log.warning("watching_impossible", extra={"error": str(error)})
        return self

    def __exit__(self, *_: object) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()

    @property
    def watching(self) -> list[str]:
        """The names of the sources that the system tells of."""
        return sorted(self._watched)

    def follow(self, sources: Iterable[FolderSource]) -> list[str]:
        """Watch these sources from now on, and no others; it returns what ``check`` does."""
        self._sources = {source.name: source for source in sources}
        for name in set(self._watched) - set(self._sources):
            self._let_go(name)
        self.polling = {name: why for name, why in self.polling.items() if name in self._sources}
        return self.check()

    def check(self, *, thoroughly: bool = False) -> list[str]:
        """Watch what is another folder now: one that came back, or took another's place.

        Args:
            thoroughly: See too whether what had to be polled can be watched, and the other way
                round.

        Returns:
            The names of the sources whose folders came, went or were replaced.
        """
        before = dict(self.polling)
        if thoroughly:
            self._reconsider()
        places = {
            name: _place(str(source.path))
            for name, source in self._sources.items()
            if name not in self.polling
        }
        changed = [name for name, place in places.items() if self._is_elsewhere(name, place)]
        for name in changed:  # all of them first: a dead watch must not be taken for a new one
            self._let_go(name)
        mounted = mounts() if changed else []
        for name in changed:
            if (place := places[name]) is not None:
                self._take_up(name, place, silent_type(place.folder, mounted))
        for name, reason in self.polling.items():
            if before.get(name) != reason:
                _log.info("source_polled", extra={"source": name, "reason": reason})
        return changed

    def _reconsider(self) -> None:
        """Let go of reasons to poll that may be over, and see whether there is a new one."""
        mounted = mounts()
        self.polling = {
            # Not even looked at, for it may hang: what is plainly on a silent file system.
            name: reason
            for name, reason in self.polling.items()
            if silent_type(str(self._sources[name].path), mounted)
        }
        if self._is_exhausted():
            self.polling |= dict.fromkeys(self._watched, "no further watch is to be had")

    def _is_elsewhere(self, name: str, place: _Place | None) -> bool:
        watched = self._watched.get(name)
        if watched is None:
            return place is not None
        return (
            watched.is_lost or watched.place != place or watched.source is not self._sources[name]
        )

    def _take_up(self, name: str, place: _Place, silent: str) -> None:
        if silent:
            self.polling[name] = f"{silent} tells of no changes"
            return
        watched = _Watched(self._sources[name], place, self._noticed)
        self._watched[name] = watched
        try:
            if self._observer is None:
                raise OSError("the system grants no watches")
            watched.watch = self._observer.schedule(
                watched, place.folder, recursive=not place.file, event_filter=_TOLD
            )
            # A tree that is watched only in part is not told of.
            if self._is_exhausted():
                raise OSError("it takes more watches than the system grants")
        except OSError as error:
            self._let_go(name)
            self.polling[name] = str(error)

    def _let_go(self, name: str) -> None:
        watched = self._watched.pop(name, None)
        if watched is None or watched.watch is None or self._observer is None:
            return
        if any(other.watch == watched.watch for other in self._watched.values()):
            self._observer.remove_handler_for_watch(watched, watched.watch)
        else:
            self._observer.unschedule(watched.watch)

    def _is_exhausted(self) -> bool:
        """Whether no further watch is to be had."""
        if self._observer is None or sys.platform != "linux":
            return self._observer is None
        try:
            self._observer.unschedule(self._observer.schedule(FileSystemEventHandler(), _PROBE))
        except OSError:
            return True
        return False


def _is_of_use(record: logging.LogRecord) -> bool:
    """Whether it is more than that a watch was let go before its thread had begun to read."""
    return "when the thread is inactive" not in record.getMessage()


def _place(path: str) -> _Place | None:
    """Where a source's folder, or the folder of its one file, is; None where it is not there."""
    real = os.path.realpath(path)
    file = ""
    if os.path.isfile(real):  # noqa: PTH113 - speed
        real, file = os.path.split(real)
    try:
        status = os.stat(real)  # noqa: PTH116 - speed
    except OSError:
        return None
    return _Place(real, file, status.st_dev, status.st_ino)
