"""A watch service over real folders, with a real index of words only."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import msgspec

from repertory.coordination.ports import in_process
from repertory.errors import StoreError
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.scan import ChangeResult, ScanResult
from repertory.project.workspace import Workspace
from repertory.settings import load
from repertory.sources.configured import Catalogue
from repertory.values import NAMESPACE
from repertory.watch_status import WatchStatus
from repertory_watch.service import WatchService
from tests.support.builders import indexed_ids, words_writer
from tests.support.waiting import TIMEOUT_S


class RecordingCoordinator(Coordinator):
    """A coordinator that records its input."""

    def __init__(self, **parts: Any) -> None:  # noqa: ANN401 - passed on unchanged
        super().__init__(**parts)
        self.scans: list[ScanResult | ChangeResult] = []
        self.adopted: list[Catalogue] = []

    def observe(self, result: ScanResult | ChangeResult) -> None:
        """Record a scan result or a change result."""
        self.scans.append(result)
        super().observe(result)

    def adopt(self, catalogue: Catalogue) -> None:
        """Record a new catalogue."""
        self.adopted.append(catalogue)
        super().adopt(catalogue)


class Watching:
    """A watched directory; the watch service runs within the context.

    Args:
        directory: The directory of the catalogue; the data directory is next to it.
        flags: Settings; by default only events cause scans.
    """

    def __init__(self, directory: Path, **flags: Any) -> None:  # noqa: ANN401 - as ``load`` takes them
        kept = directory.parent / "kept"
        defaults = {"data_dir": str(kept), "quiet": 0.2, "poll": 0.2, "reconcile": 600}
        settings = load(defaults | flags, directory)
        self._cache = SqliteVectorCache(kept / "vectors.sqlite", 1)
        self.store = EdgeStore(kept)
        coordination = in_process(kept)
        self.board = coordination.status
        writer = words_writer(self.store, self._cache, coordination)
        self._queue = InProcessQueue(writer, coordination)
        self.coordinator = RecordingCoordinator(
            store=self.store,
            queue=self._queue,
            coordination=coordination,
            active=NAMESPACE,
        )
        workspace = Workspace(settings, directory)
        self.service = WatchService(settings, workspace, self.coordinator, self.board)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.service.run, args=(self._stop,))

    def __enter__(self) -> Self:
        self._queue.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._queue.__exit__()
        self._cache.close()

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until a condition is true."""
        deadline = time.monotonic() + TIMEOUT_S
        while not done():
            assert self._thread.is_alive()
            assert time.monotonic() < deadline, self.status
            time.sleep(0.02)

    def wait_for(self, *items: str) -> None:
        """Wait until the index contains exactly these items."""
        self.wait(lambda: self.indexed == sorted(items))

    def wait_until_quiet(self) -> None:
        """Wait until the service is idle."""
        self.wait(lambda: not self.service.is_busy)

    @property
    def indexed(self) -> list[str]:
        """The ids in the active index; empty while it is missing."""
        with contextlib.suppress(StoreError):
            return indexed_ids(self.store, NAMESPACE)
        return []

    def scans(self, source: str = "team") -> int:
        """The number of scans of a source."""
        return sum(one.source.name == source for one in self.coordinator.scans)

    @property
    def status(self) -> dict[str, Any]:
        """The last status that the service reported, or an empty status."""
        empty: dict[str, Any] = msgspec.to_builtins(WatchStatus())
        return empty | self.board.reports().get("watch", {})

    def error(self, source: str = "team") -> str:
        """The error of a source; empty without an error."""
        found: Iterable[dict[str, Any]] = self.status.get("sources", ())
        return next((one["error"] for one in found if one["name"] == source), "")
