"""The watch service: it reads a source again when the source may have changed.

One loop makes the decisions and passes results to the coordinator. Scans run in a small thread
pool and servers report on threads of their own, so that none of them delays a save. A scan of many
files pauses regularly to read files that were saved meanwhile.
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

from msgspec.structs import replace

from repertory.coordination.status import StatusBoard
from repertory.errors import SourceError, StoreError
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.scan import SourceResult
from repertory.project.workspace import Indexed, Workspace
from repertory.settings import Settings
from repertory.sources.configured import Catalogue
from repertory.sources.source import Source
from repertory.system.files import signature
from repertory.text import clean
from repertory.watch_status import report_watch, watch_status
from repertory_watch.configuration import Configuration, SearchedFolders, WatchedPaths
from repertory_watch.debounce import Debounce
from repertory_watch.events import FolderWatches
from repertory_watch.tasks import CONFIGURATION, Task, WatchedSource, load

SCAN_CONCURRENCY = 4
STOP_CONCURRENCY = 16  # servers that are ended at a time; separate, so that none delays a scan
BUSY_WAIT_S, IDLE_WAIT_S = 0.05, 0.25  # between two rounds of the loop
CHECK_INTERVAL_S = 0.5  # between two checks of folders and configuration files
STATUS_INTERVAL_S = 1.0
MAX_PATHS = 1_000  # changed at a time; with more, the system may have lost events

T = TypeVar("T")
Result = SourceResult | Configuration

_log = logging.getLogger(__name__)


class WatchService:
    """Keeps the index of a workspace up to date. An instance supports one ``run``.

    Args:
        settings: The intervals. Changes of configuration files affect the sources, not these.
        workspace: The workspace to watch.
        coordinator: Receives every scan, on the thread that calls ``run``.
        status: Receives the service's status as ``watch``.
    """

    def __init__(
        self,
        settings: Settings,
        workspace: Workspace,
        coordinator: Coordinator,
        status: StatusBoard,
    ) -> None:
        self._values = settings.values
        self._data = settings.data_dir
        self._coordinator = coordinator
        self._status = status
        self._configuration = Configuration(workspace)
        self._loading = Task(CONFIGURATION, lambda: load(self._configuration))
        self._paths = WatchedPaths()
        self._paths.follow(workspace)
        self._searched = SearchedFolders()
        self._states: dict[str, WatchedSource] = {}
        self._debounce = Debounce(self._values.debounce, signature)
        self._folders = FolderWatches(self._on_event)
        self._pool = ThreadPoolExecutor(SCAN_CONCURRENCY, thread_name_prefix="scan")
        self._stops = ThreadPoolExecutor(STOP_CONCURRENCY, thread_name_prefix="stop")
        self._wake = threading.Event()
        self._lock = threading.Lock()
        # A set, so that it is bounded by the number of files if the loop is delayed.
        self._events: set[tuple[str, str]] = set()
        self._signals: SimpleQueue[WatchedSource] = SimpleQueue()
        self._stop = threading.Event()
        self._is_closing = False
        # The last value says whether the task has finished.
        self._results: SimpleQueue[tuple[Task, Result | None, bool]] = SimpleQueue()

    def run(self, stop: threading.Event) -> None:
        """Watch until ``stop`` is set. When this returns, all servers have ended."""
        checked_at = reported_at = float("-inf")
        reported = ("", False)
        reconciled_at = time.monotonic()
        self._stop = stop
        try:
            with self._folders:
                self._start(self._loading)
                while not stop.is_set():
                    now = time.monotonic()
                    if now - checked_at >= CHECK_INTERVAL_S:
                        self._check(now)
                        checked_at = now
                    self._start_due(now)
                    if now - reconciled_at >= self._values.reconcile:
                        self._reconcile()
                        reconciled_at = now
                    self._collect()
                    self._coordinator.tick()
                    # The first report must precede the first item: it says who may see what.
                    searched = self._coordinator.active, self._coordinator.is_building
                    is_due = now - reported_at >= STATUS_INTERVAL_S or searched != reported
                    if is_due and self._is_known:
                        self._report()
                        reported_at, reported = now, searched
                    self._wake.wait(BUSY_WAIT_S if self.is_busy else IDLE_WAIT_S)
                    self._wake.clear()
        finally:
            self._close()

    @property
    def configuration(self) -> str:
        """The hash of the current configuration; empty until one could be read."""
        catalogue = self._configuration.catalogue
        return catalogue.hash if catalogue else ""

    @property
    def is_busy(self) -> bool:
        """Whether work is running or pending."""
        return (
            self._loading.is_running
            or any(state.is_running for state in self._states.values())
            or self._debounce.is_pending
            or self._coordinator.is_busy
            or self._coordinator.is_verifying
        )

    @property
    def _is_ending(self) -> bool:
        """Whether long operations should stop."""
        return self._is_closing or self._stop.is_set()

    def _check(self, now: float, *, thoroughly: bool = False) -> None:
        """Check for changes without events: replaced folders, changed configuration files."""
        for name in self._folders.check(thoroughly=thoroughly):
            if name in self._states:
                self._debounce.add(name, self._states[name].source.location, now)
            else:  # a searched folder, in which a new source may have appeared
                self._start(self._loading)
        for path in self._paths.changed():
            self._debounce.add(CONFIGURATION, path, now)

    def _start_due(self, now: float) -> None:
        """Process events and signals, and start the scans that are due."""
        with self._lock:
            events, self._events = self._events, set()
        for name, path in events:
            if name in self._states or name in self._searched.folders:
                self._debounce.add(name, path, now)
        for name, paths in self._debounce.due(now).items():
            self._start_changed(name, paths)
        for state in _drain(self._signals):
            if self._states.get(state.name) is state:
                state.is_ready = True
                self._start(state)
        for name in self._states.keys() & self._folders.polling.keys():
            state = self._states[name]
            is_due = state.finished_at is not None and now - state.finished_at >= self._values.poll
            if is_due and not state.is_running:
                self._start(state)

    def _start_changed(self, name: str, paths: list[str]) -> None:
        """Read the changed paths of a source, or the configuration."""
        if name in self._searched.folders:
            sources = (state.source for state in self._states.values())
            if self._searched.lacks(sources, name, paths):
                self._start(self._loading)
        elif name == CONFIGURATION:
            self._start(self._loading)
        elif len(paths) > MAX_PATHS:
            self._start(self._states[name])
        else:
            self._states[name].changed.extend(paths)
            self._follow(self._states[name])

    def _reconcile(self) -> None:
        """Load and scan everything, even unchanged; slow sources less often."""
        now = time.monotonic()
        self._check(now, thoroughly=True)
        if now >= self._loading.rests_until:
            self._start(self._loading)
        for state in self._states.values():
            if state.is_ready and now >= state.rests_until:
                self._start(state)
        self._coordinator.reconcile()

    def _start(self, task: Task) -> None:
        """Run a task in the pool; if it is running, request another run."""
        if task.is_running:
            task.is_requested = True
            return
        task.is_running = True
        self._pool.submit(self._run, task, task.run)

    def _follow(self, state: WatchedSource) -> None:
        """Read the changed paths of a source. A running scan does so in its pauses instead."""
        if state.changed and not state.is_running:
            state.is_running = True
            self._pool.submit(self._run, state, state.rescan)

    def _run(self, task: Task, run: Callable[[], Result | None]) -> None:
        if self._is_ending:
            return
        result = run()
        if isinstance(result, SourceResult) and not self._is_ending:
            try:
                self._coordinator.examine(result, lambda: self._is_ending)
            # A boundary: a defect here must not hold back the result; ``observe`` does the rest.
            except Exception:
                _log.exception("examination_failed", extra={"source": task.name})
        self._results.put((task, result, True))
        self._wake.set()

    def _on_pause(self, state: WatchedSource) -> None:
        """Read the paths that changed while a scan runs. Called on the scan's thread.

        During the first scan of a source, this reads nothing: the changes are read after it.

        Raises:
            SourceError: The watch ends, and the scan with it.
        """
        if self._is_ending:
            raise SourceError("The watch ends.")
        if state.changed and state.finished_at is not None:
            self._results.put((state, state.rescan(), False))
            self._wake.set()

    def _collect(self) -> None:
        """Process the results of tasks."""
        for task, result, is_finished in _drain(self._results):
            if self._is_ending:  # each result may take a second to process
                return
            if is_finished:
                task.is_running = False
                task.finished_at = time.monotonic()
            if isinstance(result, Configuration):
                self._configure(result)
            elif self._states.get(task.name) is not task:
                continue  # the source was removed or replaced meanwhile
            elif result is None:
                task.is_requested = True
            else:
                self._coordinator.observe(result)
            if not is_finished:
                continue
            if task.is_requested:
                task.is_requested = False
                self._start(task)
            elif isinstance(task, WatchedSource):
                self._follow(task)

    def _configure(self, configuration: Configuration) -> None:
        before, self._configuration = self._configuration, configuration
        if configuration.error and configuration.error != before.error:
            _log.warning("configuration_broken", extra={"error": configuration.error})
        self._paths.follow(configuration.workspace)
        for name in self._searched.follow(configuration.workspace):
            self._debounce.forget(name)
        if configuration.catalogue is not None and configuration.catalogue != before.catalogue:
            self._adopt(configuration.catalogue)
            self._remember(configuration)

    def _remember(self, configuration: Configuration) -> None:
        """Store the servers, so that a half-saved file at the next start does not remove them."""
        workspace, catalogue = configuration.workspace, configuration.catalogue
        assert catalogue is not None
        with contextlib.suppress(StoreError):
            workspace.remember(Indexed.of(workspace.request, catalogue))

    def _adopt(self, catalogue: Catalogue) -> None:
        before = self._states
        self._states = {source.name: _state(source, before) for source in catalogue.sources}
        _log.info(
            "configuration_adopted",
            extra={"configuration": catalogue.hash, "sources": len(self._states)},
        )
        for name, state in before.items():
            if self._states.get(name) is not state:
                self._debounce.forget(name)
                if state.stop is not None:
                    self._stops.submit(state.stop)
        self._coordinator.adopt(catalogue)
        # Watch before scanning, so that no change is missed in between.
        folders = {one.name: one.folder for one in catalogue.sources if one.folder is not None}
        changed = self._folders.follow({**folders, **self._searched.folders})
        for name, state in self._states.items():
            is_new = before.get(name) is not state
            if is_new:
                self._watch(state)
            if name in changed or (is_new and state.is_ready):
                self._start(state)

    def _watch(self, state: WatchedSource) -> None:
        """Let a source report its changes. If it does, its first signal starts its first scan."""
        state.source.disk = self._data
        state.source.on_pause = functools.partial(self._on_pause, state)
        state.stop = state.source.watch(
            functools.partial(self._on_signal, state), self._values.reconcile
        )
        state.is_ready = state.stop is None

    def _on_event(self, name: str, path: str) -> None:
        with self._lock:
            self._events.add((name, path))
        self._wake.set()

    def _on_signal(self, state: WatchedSource) -> None:
        self._signals.put(state)
        self._wake.set()

    @property
    def _is_known(self) -> bool:
        """Whether the sources are known. Until then, the report of an earlier process is kept."""
        return self._configuration.catalogue is not None or bool(self._configuration.error)

    def _report(self) -> None:
        status = self._coordinator.status()
        try:
            if self._configuration.catalogue is None:  # the last known sources are still searched
                last = watch_status(self._status) or status
                status = replace(status, configuration=last.configuration, sources=last.sources)
            status = replace(
                status,
                configuration_error=clean(self._configuration.error),
                notices=[*map(clean, self._configuration.workspace.notices)],
                watching=[one for one in self._folders.watching if one in self._states],
                polling={
                    name: reason
                    for name, reason in self._folders.polling.items()
                    if name in self._states
                },
            )
            report_watch(self._status, status)
        except StoreError as error:  # the next report follows in a second
            _log.debug("status_not_reported", extra={"error": str(error)})

    def _close(self) -> None:
        self._is_closing = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for state in self._states.values():
            if state.stop is not None:
                self._stops.submit(state.stop)
        self._stops.shutdown()
        self._pool.shutdown()


def _state(source: Source, before: dict[str, WatchedSource]) -> WatchedSource:
    """The state of a source: the earlier one if the source is still the same object."""
    state = before.get(source.name)
    return state if state is not None and state.source is source else WatchedSource(source)


def _drain(queue: SimpleQueue[T]) -> Iterator[T]:
    """Yield everything in a queue."""
    with contextlib.suppress(Empty):
        while True:
            yield queue.get_nowait()
