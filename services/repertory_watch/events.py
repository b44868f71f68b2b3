"""Watches folders through the file events of the operating system.

An event is only a hint: it says which source to scan, not what happened.
"""

import errno
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec
from watchdog import events
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from repertory.sources.reading.walk import SKIPPED, TEMPORARY
from repertory.sources.source import WatchedFolder
from repertory.system.paths import as_listed, listed_path, real_path
from repertory_watch.filesystems import mounts, silent_type

# All except those for opening files and closing them unchanged, which every scan causes.
_EVENTS = [
    *(events.DirAttribEvent, events.DirCreatedEvent, events.DirDeletedEvent, events.DirMovedEvent),
    *(events.FileAttribEvent, events.FileClosedEvent, events.FileCreatedEvent),
    *(events.FileDeletedEvent, events.FileModifiedEvent, events.FileMovedEvent),
]
# The limits that inotify may reach, by error number.
_LIMITS = {errno.ENOSPC: "max_user_watches", errno.EMFILE: "max_user_instances"}
_SETTINGS = Path("/proc/sys/fs/inotify")
MADE_S = 2.0  # how long a folder counts as just created
_PROBE = "/proc"  # a folder that exists and that no source watches

_log = logging.getLogger(__name__)

OnEvent = Callable[[str, str], None]


class _Place(msgspec.Struct, frozen=True):
    """The resolved location of a source's folder; a single file is watched through its folder."""

    folder: str
    file: str
    device: int
    number: int
    is_open: bool


class _Watched(events.FileSystemEventHandler):
    """One watched source, which passes on the events that concern it."""

    def __init__(self, name: str, folder: WatchedFolder, place: _Place, on_event: OnEvent) -> None:
        self.name = name
        self.folder = folder
        self.place = place
        # On macOS, events name files as the folder lists them, not as the path was given.
        self.path = listed_path(place.folder)
        self._file = place.file and os.path.join(self.path, as_listed(self.path, place.file))  # noqa: PTH118 - speed
        self._on_event = on_event
        self.watch: ObservedWatch | None = None
        self.is_lost = False
        self._made: dict[str, float] = {}  # just created folders, with the time

    def on_any_event(self, event: events.FileSystemEvent) -> None:
        """Pass on an event that may concern the source. Called on the observer's thread."""
        source, target = os.fsdecode(event.src_path), os.fsdecode(event.dest_path)
        if source == self.path and isinstance(event, events.DirDeletedEvent):
            self.is_lost = True
        if isinstance(event, events.DirAttribEvent) and self.folder.is_closed(source):
            self.is_lost = True  # watchdog does not watch a folder that was closed
        for path in filter(None, (source, target)):
            if self._concerns(path, is_folder=event.is_directory):
                # watchdog keeps watching a folder that was moved away, under its old name.
                self.is_lost |= isinstance(event, events.DirMovedEvent) and (
                    not target or source in self._made
                )
                self._on_event(self.name, path)
        if isinstance(event, events.DirCreatedEvent):
            self._note_made(source)

    def _note_made(self, folder: str) -> None:
        """Record that a folder was created.

        If it is moved immediately, watchdog may confuse it with another folder and not watch it.
        """
        now = time.monotonic()
        self._made = {path: at for path, at in self._made.items() if now - at < MADE_S}
        self._made[folder] = now

    def _concerns(self, path: str, *, is_folder: bool) -> bool:
        if self._file:
            return path == self._file
        names = path.removeprefix(self.path).split("/")
        name = names[-1]
        if name.startswith(TEMPORARY):
            return False
        if not SKIPPED.isdisjoint(names):  # only read if a link leads there
            folders = names if is_folder else names[:-1]
            if not any(map(self.folder.concerns, folders)):
                return False
        # A new link may lead to a folder.
        return is_folder or self.folder.concerns(name) or os.path.islink(path)  # noqa: PTH114 - speed


class FolderWatches:
    """The watched folders of sources. A context manager, for use by one thread.

    Args:
        on_event: Receives a source's name and the path of an event, on another thread.

    Attributes:
        polling: The reason why a source has to be polled, by the source's name.
    """

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._folders: dict[str, WatchedFolder] = {}
        self._watched: dict[str, _Watched] = {}
        self._observer: BaseObserver | None = None
        self._error: OSError | None = None  # why there is no observer
        self._has_lost = threading.Event()  # whether the system dropped events
        self.polling: dict[str, str] = {}

    def __enter__(self) -> Self:
        logging.getLogger("watchdog.observers.inotify").addFilter(_is_relevant)
        # A harmless warning, but it names all watched folders, and Python keeps each text for ever.
        warnings.filterwarnings("ignore", "Callback with id .* already exists", RuntimeWarning)
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def watching(self) -> list[str]:
        """The names of the sources whose events the system reports."""
        return sorted(self._watched)

    def follow(self, folders: Mapping[str, WatchedFolder]) -> list[str]:
        """Watch exactly these folders, given by source name; return the result of ``check``."""
        self._folders = dict(folders)
        for name in set(self._watched) - set(self._folders):
            self._unwatch(name)
        self.polling = {name: why for name, why in self.polling.items() if name in self._folders}
        return self.check()

    def check(self, *, thoroughly: bool = False) -> list[str]:
        """Watch each folder that appeared or was replaced since the last check.

        Args:
            thoroughly: Also check whether polled folders can be watched, and vice versa.

        Returns:
            The names of the sources whose folders appeared, disappeared or were replaced; if the
            system dropped events, the names of all watched sources.
        """
        before = dict(self.polling)
        lost = {one.watch for one in self._watched.values() if one.is_lost}
        for one in self._watched.values():  # sources of the same folder share a watch
            one.is_lost |= one.watch in lost
        if has_lost := self._has_lost.is_set():
            self._has_lost.clear()  # losses from now on are handled by the next check
        if self._observer is not None and _has_failed(self._observer):
            self._restart()
        if thoroughly:
            self._reconsider()
        places = {
            name: _place(str(folder.path))
            for name, folder in self._folders.items()
            if name not in self.polling
        }
        changed = [name for name, place in places.items() if self._is_elsewhere(name, place)]
        for name in changed:  # first all of them, so that no dead watch is reused
            self._unwatch(name)
        mounted = mounts() if changed else []
        for name in changed:
            if (place := places[name]) is not None:
                self._watch(name, place, silent_type(place.folder, mounted))
        for name, reason in self.polling.items():
            if before.get(name) != reason:
                _log.info("source_polled", extra={"source": name, "reason": reason})
        return [*dict.fromkeys([*changed, *self._watched])] if has_lost else changed

    def _reconsider(self) -> None:
        """Drop the reasons for polling that may no longer apply, and check for a new one."""
        mounted = mounts()
        self.polling = {
            # A folder on a silent file system is not touched at all, because that may hang.
            name: reason
            for name, reason in self.polling.items()
            if silent_type(str(self._folders[name].path), mounted)
        }
        if self._is_exhausted():
            self.polling |= dict.fromkeys(self._watched, _exhausted(errno.ENOSPC))

    def _is_elsewhere(self, name: str, place: _Place | None) -> bool:
        watched = self._watched.get(name)
        if watched is None:
            return place is not None
        return (
            watched.is_lost
            or watched.place != place
            or watched.folder is not self._folders[name]
            or not self._is_reported(watched)
        )

    def _is_reported(self, watched: _Watched) -> bool:
        """Whether the thread that reports the events of a source is alive."""
        emitters = self._observer.emitters if self._observer is not None else ()
        return any(one.watch == watched.watch and one.is_alive() for one in emitters)

    def _watch(self, name: str, place: _Place, silent: str) -> None:
        if silent:
            self.polling[name] = f"{silent} reports no changes"
            return
        watched = _Watched(name, self._folders[name], place, self._on_event)
        self._watched[name] = watched
        try:
            if self._observer is None:
                raise self._error or OSError("the system reports no changes")
            watched.watch = self._observer.schedule(
                watched, watched.path, recursive=not place.file, event_filter=_EVENTS
            )
            # watchdog does not report that it watches only a part of a tree.
            if self._is_exhausted():
                raise OSError(errno.ENOSPC, "it takes more watches than the system grants")
        except OSError as error:
            self._unwatch(name)
            self.polling[name] = _exhausted(error.errno) or str(error)
        except (RuntimeError, SystemError):  # from FSEvents, for example in a macOS sandbox
            self._unwatch(name)
            self.polling[name] = "the system starts no stream of file events"

    def _unwatch(self, name: str) -> None:
        watched = self._watched.pop(name, None)
        if watched is None or watched.watch is None or self._observer is None:
            return
        if any(other.watch == watched.watch for other in self._watched.values()):
            self._observer.remove_handler_for_watch(watched, watched.watch)
            return
        try:
            self._observer.unschedule(watched.watch)
        # A boundary: after moves, watchdog raises a KeyError, which must not end the watch.
        except Exception:
            _log.exception("watching_failed")
            self._restart()

    def _begin(self) -> None:
        try:
            self._observer = _observer(self._has_lost)
            self._observer.start()
        except OSError as error:
            self._observer, self._error = None, error
            _log.warning("watching_unavailable", extra={"error": str(error)})

    def _end(self) -> None:
        observer, self._observer = self._observer, None
        if observer is None:
            return
        for emitter in list(observer.emitters):
            try:
                emitter.stop()
            except Exception:  # its thread may never end, so it is not joined
                _log.exception("watching_failed")
                observer.emitters.discard(emitter)
        observer.stop()
        observer.join()

    def _restart(self) -> None:
        """Start new threads that watch nothing; the next check watches every folder again."""
        _log.warning("watching_restarted")
        self._end()
        self._watched.clear()
        self._begin()

    def _is_exhausted(self) -> bool:
        """Whether the system grants no further watches."""
        if self._observer is None or sys.platform != "linux":
            return self._observer is None
        try:
            self._observer.unschedule(
                self._observer.schedule(events.FileSystemEventHandler(), _PROBE)
            )
        except OSError:
            return True
        return False


def _observer(has_lost: threading.Event) -> BaseObserver:
    """An observer that distinguishes a folder that was moved away from a deleted one.

    Args:
        has_lost: Set when the system has dropped events because its queue was full.
    """
    if sys.platform != "linux":
        return Observer()
    observer = Observer(generate_full_events=True)  # type: ignore[call-arg] # inotify's takes it
    reader = _reader(observer)
    handle = reader.handle_event

    def handle_event(event: Any) -> None:  # noqa: ANN401 - specific to inotify
        handle(event)  # renews the watches of existing folders
        if event.is_queue_overflow:
            has_lost.set()

    reader.handle_event = handle_event
    return observer


def _reader(observer: BaseObserver) -> Any:  # noqa: ANN401 - it has no public type
    """The thread that reads inotify's events; on other systems the observer itself."""
    return getattr(observer, "_inotify_fd", observer)  # it has no public name


def _has_failed(observer: BaseObserver) -> bool:
    """Whether a thread that serves all folders has ended, such as after a defect in watchdog."""
    reader = _reader(observer)
    return not (observer.is_alive() and reader.is_alive())


def _exhausted(number: int | None) -> str:
    """The system limit behind an error, and how to raise it; empty if it is no such error."""
    name = _LIMITS.get(number or 0)
    if not name:
        return ""
    try:
        now = f" above {int((_SETTINGS / name).read_text()):,}"
    except (OSError, ValueError):
        now = ""
    setting = f"fs.inotify.{name}"
    return f"the system grants no further file watches; raise {setting}{now} with sysctl"


def _is_relevant(record: logging.LogRecord) -> bool:
    """Drop watchdog's harmless 'thread is inactive' warning."""
    return "when the thread is inactive" not in record.getMessage()


def _place(path: str) -> _Place | None:
    """Resolve a source's folder, or the folder of its single file; None if it does not exist."""
    real = real_path(path)
    file = ""
    if os.path.isfile(real):  # noqa: PTH113 - speed
        real, file = os.path.split(real)
    try:
        status = os.stat(real)  # noqa: PTH116 - speed
    except OSError:
        return None
    # The system reports no changes in a folder that was closed when its watch began.
    is_open = os.access(real, os.R_OK | os.X_OK)
    return _Place(real, file, status.st_dev, status.st_ino, is_open)
