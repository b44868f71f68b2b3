"""A watch service over real folders, with a real index behind it that stores words alone."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from repertory.coordination.claims import MemoryClaims
from repertory.coordination.deltas import MemoryDeltas
from repertory.coordination.failures import MemoryFailures
from repertory.coordination.snapshots import FileSnapshots
from repertory.coordination.status import MemoryStatus
from repertory.coordination.tombstones import MemoryTombstones
from repertory.embedding.words import WordsEngine
from repertory.errors import StoreError
from repertory.index.cache import SqliteVectorCache
from repertory.index.edge import EdgeStore
from repertory.indexing.collections import IN_FORCE
from repertory.indexing.coordinator import Coordinator
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.scan import Scanned
from repertory.indexing.writer import Writer
from repertory.settings import load
from repertory.sources.catalogue import Catalogue
from repertory.workspace import Workspace
from repertory_watch.service import WatchService

PATIENCE = 60  # seconds, far longer than anything takes


class Noting(Coordinator):
    """A coordinator that notes what it is told."""

    def __init__(self, **parts: Any) -> None:  # noqa: ANN401 - passed on as they are
        super().__init__(**parts)
        self.looks: list[Scanned] = []
        self.adopted: list[Catalogue] = []

    def observe(self, scanned: Scanned) -> None:
        """Note a look at a source."""
        self.looks.append(scanned)
        super().observe(scanned)

    def adopt(self, catalogue: Catalogue) -> None:
        """Note a configuration."""
        self.adopted.append(catalogue)
        super().adopt(catalogue)


class Watching:
    """A directory that is watched, as a context manager.

    Args:
        directory: Where the catalogue is looked for; what is stored is kept beside it.
        flags: Settings; by default nothing is looked at again unless something is noticed.
    """

    def __init__(self, directory: Path, **flags: Any) -> None:  # noqa: ANN401 - as ``load`` takes them
        kept = directory.parent / "kept"
        defaults = {"data_dir": str(kept), "quiet": 0.2, "poll": 0.2, "reconcile": 600}
        settings = load(defaults | flags, directory)
        self._cache = SqliteVectorCache(kept / "vectors.sqlite", 1)
        self.store = EdgeStore(kept)
        deltas, failures, tombstones = MemoryDeltas(), MemoryFailures(), MemoryTombstones()
        snapshots = FileSnapshots(kept / "keywords")
        self.board = MemoryStatus()
        writer = Writer(
            store=self.store,
            engine=lambda: WordsEngine("a test"),
            cache=lambda _model: self._cache,
            snapshots=snapshots,
            tombstones=tombstones,
            claims=MemoryClaims(),
            deltas=deltas,
            status=self.board,
        )
        self._queue = InProcessQueue(writer, failures, snapshots)
        self.coordinator = Noting(
            store=self.store,
            queue=self._queue,
            deltas=deltas,
            snapshots=snapshots,
            failures=failures,
            tombstones=tombstones,
            in_force=IN_FORCE,
        )
        workspace = Workspace(settings, directory)
        self.service = WatchService(settings, workspace, self.coordinator, self.board)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.service.run, args=(self._stop,))

    def __enter__(self) -> Self:
        self._queue.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._queue.__exit__(kind, error, trace)
        self._cache.close()

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert self._thread.is_alive()
            assert time.monotonic() < deadline, self.status
            time.sleep(0.02)

    def wait_for(self, *items: str) -> None:
        """Wait until the index holds these items and no others."""
        self.wait(lambda: self.indexed == sorted(items))

    def wait_until_quiet(self) -> None:
        """Wait until nothing is under way."""
        self.wait(lambda: not self.service.is_busy)

    @property
    def indexed(self) -> list[str]:
        """The ids of what the index in force holds."""
        with contextlib.suppress(StoreError):
            if name := self.store.alias(IN_FORCE):
                with self.store.open(name) as collection:
                    return sorted(state.item for state in collection.states())
        return []

    def looks(self, source: str = "team") -> int:
        """How often a source was looked at."""
        return sum(look.source.name == source for look in self.coordinator.looks)

    @property
    def status(self) -> dict[str, Any]:
        """What the service last said of itself."""
        return self.board.reports().get("watch", {})

    def error(self, source: str = "team") -> str:
        """What is wrong with a source."""
        found: Iterable[dict[str, Any]] = self.status.get("sources", ())
        return next((one["error"] for one in found if one["name"] == source), "")
