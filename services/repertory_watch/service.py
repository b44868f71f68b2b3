"""The watch service: it sees that every source is looked at when it has to be.

One loop decides and hands over to the coordinator. Looking is done on a few other threads, and
servers are listened to on threads of their own, so that none of them holds up a file's save.
"""

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TypeVar

import msgspec

from repertory.coordination.status import StatusBoard
from repertory.errors import StoreError
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.scan import ScanResult, scan_source
from repertory.settings import Settings
from repertory.sources.catalogue import Catalogue
from repertory.sources.folder import FolderSource
from repertory.sources.mcp.source import McpServer
from repertory.sources.source import Source
from repertory.workspace import Workspace
from repertory_watch.configuration import Configured, Paths, read
from repertory_watch.debounce import Debounce
from repertory_watch.events import Folders
from repertory_watch.signatures import signature

AT_ONCE = 4  # looks
BUSY, IDLE = 0.05, 0.25  # seconds between two rounds of the loop
CHECK = 0.5  # seconds between two looks at whether folders and configuration are what they were
SAY = 1.0  # seconds between two reports
CONFIGURATION = ""  # stands for the configuration where a source's name is expected

T = TypeVar("T")
Seen = ScanResult | Configured

_log = logging.getLogger(__name__)


class WatchService:
    """Keeps looking at the sources of a workspace. For one ``run``.

    Args:
        settings: How long to wait for what. The sources follow the configuration's files as they
            change; these settings do not.
        workspace: What is to be watched.
        coordinator: Is told what was seen, on the thread that calls ``run``.
        status: Where the service says how it is, as ``watch``.
        clock: A clock that never jumps, in seconds.
    """

    def __init__(
        self,
        settings: Settings,
        workspace: Workspace,
        coordinator: Coordinator,
        status: StatusBoard,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._values = settings.values
        self._coordinator = coordinator
        self._status = status
        self._clock = clock
        self._configured = Configured(workspace)
        self._paths = Paths()
        self._paths.follow(workspace)
        self._debounce = Debounce(self._values.quiet, signature)
        self._folders = Folders(self._notice)
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="look")
        self._sources: dict[str, Source] = {}
        self._heard: dict[str, bool] = {}  # the servers that are followed: whether they were heard
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._noticed: set[tuple[str, str]] = set()  # a set, for the loop may be held up
        self._spoken: SimpleQueue[McpServer] = SimpleQueue()
        self._seen: SimpleQueue[tuple[str, Seen]] = SimpleQueue()
        self._looking: set[str] = set()
        self._again: set[str] = set()
        self._looked: dict[str, float] = {}

    def run(self, stop: threading.Event) -> None:
        """Watch until told to stop; servers have ended when it returns."""
        checked = said = float("-inf")
        reconciled = self._clock()
        try:
            with self._folders:
                self._look(CONFIGURATION)
                while not stop.is_set():
                    now = self._clock()
                    if now - checked >= CHECK:
                        self._check(now)
                        checked = now
                    self._hear(now)
                    if now - reconciled >= self._values.reconcile:
                        self._reconcile()
                        reconciled = now
                    self._collect()
                    self._coordinator.tick()
                    if now - said >= SAY:
                        self._say()
                        said = now
                    self._wake.wait(BUSY if self.is_busy else IDLE)
                    self._wake.clear()
        finally:
            self._end()

    @property
    def is_busy(self) -> bool:
        """Whether something is under way."""
        return bool(self._looking) or self._debounce.is_waiting or self._coordinator.is_busy

    def _check(self, now: float) -> None:
        """See what nobody tells: folders that came and went, configuration files that changed."""
        for name in self._folders.check():
            self._debounce.noticed(name, str(self._sources[name].location), now)
        for path in self._paths.changed():
            self._debounce.noticed(CONFIGURATION, path, now)

    def _hear(self, now: float) -> None:
        """Take in what was told, and look at what is due."""
        with self._lock:
            noticed, self._noticed = self._noticed, set()
        for name, path in noticed:
            if name in self._sources:
                self._debounce.noticed(name, path, now)
        for name in self._debounce.due(now):
            self._look(name)
        for server in _all(self._spoken):
            if self._sources.get(server.name) is server:
                self._heard[server.name] = True
                self._look(server.name)
        for name in self._folders.polling:
            if name not in self._looking and now - self._looked.get(name, now) >= self._values.poll:
                self._look(name)

    def _reconcile(self) -> None:
        """Look at everything, whatever was told."""
        self._folders.check(thoroughly=True)
        self._look(CONFIGURATION)
        for name in self._sources:
            if self._heard.get(name, True):
                self._look(name)
        self._coordinator.reconcile()

    def _look(self, name: str) -> None:
        """Look at a source, or at the configuration, on another thread; never twice at once."""
        if name in self._looking:
            self._again.add(name)
            return
        self._looking.add(name)
        if name == CONFIGURATION:
            self._pool.submit(self._do, name, functools.partial(_read, self._configured))
        else:
            self._pool.submit(self._do, name, functools.partial(_look_at, self._sources[name]))

    def _do(self, name: str, work: Callable[[], Seen]) -> None:
        self._seen.put((name, work()))
        self._wake.set()

    def _collect(self) -> None:
        """Hand over what was seen."""
        for name, result in _all(self._seen):
            self._looking.discard(name)
            self._looked[name] = self._clock()
            if isinstance(result, Configured):
                self._configure(result)
            elif self._sources.get(name) is result.source:
                self._coordinator.observe(result)
            if name in self._again:
                self._again.discard(name)
                if name == CONFIGURATION or name in self._sources:
                    self._look(name)

    def _configure(self, configured: Configured) -> None:
        before, self._configured = self._configured, configured
        if configured.error and configured.error != before.error:
            _log.warning("configuration_broken", extra={"error": configured.error})
        self._paths.follow(configured.workspace)
        if configured.catalogue is not None and configured.catalogue != before.catalogue:
            self._adopt(configured.catalogue)

    def _adopt(self, catalogue: Catalogue) -> None:
        before, self._sources = self._sources, {one.name: one for one in catalogue.sources}
        _log.info(
            "configuration_adopted",
            extra={"configuration": catalogue.hash, "sources": len(self._sources)},
        )
        for name, source in before.items():
            if self._sources.get(name) is not source:
                self._debounce.forget(name)
                self._looked.pop(name, None)
                if self._heard.pop(name, None) is not None and isinstance(source, McpServer):
                    self._pool.submit(source.leave)
        self._coordinator.adopt(catalogue)
        # Watched before they are looked at, so that nothing is missed in between.
        folders = (one for one in catalogue.sources if isinstance(one, FolderSource))
        changed = self._folders.follow(folders)
        for name, source in self._sources.items():
            is_new = before.get(name) is not source
            if name in changed or (is_new and not self._follows(source)):
                self._look(name)

    def _follows(self, source: Source) -> bool:
        """Follow a server that may be followed: it is looked at when it is heard of."""
        if not isinstance(source, McpServer):
            return False
        speak = functools.partial(self._speak, source)
        if not source.follow(speak, self._values.reconcile):
            return False
        self._heard[source.name] = False
        return True

    def _notice(self, name: str, path: str) -> None:
        with self._lock:
            self._noticed.add((name, path))
        self._wake.set()

    def _speak(self, server: McpServer) -> None:
        self._spoken.put(server)
        self._wake.set()

    def _say(self) -> None:
        status = msgspec.structs.replace(
            self._coordinator.status(),
            configuration_error=self._configured.error,
            watching=self._folders.watching,
            polling=sorted(self._folders.polling),
        )
        try:
            self._status.report("watch", msgspec.to_builtins(status))
        except StoreError as error:  # said again in a second
            _log.debug("status_unsaid", extra={"error": str(error)})

    def _end(self) -> None:
        for name in self._heard:
            source = self._sources[name]
            assert isinstance(source, McpServer)
            self._pool.submit(source.leave)
        self._pool.shutdown()


def _look_at(source: Source) -> ScanResult:
    try:
        return scan_source(source)
    # A boundary: a fault in reading one source must not end the watch over the others.
    except Exception:
        _log.exception("look_failed", extra={"source": source.name})
        error = f"The source {source.name} could not be read because of a fault; see the log."
        return ScanResult(source=source, scan=None, error=error, at=time.time())


def _read(before: Configured) -> Configured:
    try:
        return read(before)
    # A boundary, likewise.
    except Exception:
        _log.exception("configuration_failed")
        error = "The configuration could not be read because of a fault; see the log."
        return msgspec.structs.replace(before, error=error)


def _all(queue: SimpleQueue[T]) -> Iterator[T]:
    """What waits in a queue."""
    with contextlib.suppress(Empty):
        while True:
            yield queue.get_nowait()
