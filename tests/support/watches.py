"""Redis, Qdrant, a worker, and any number of watch services, each as a process."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from repertory.compose import Parts
from repertory.coordination.lease import RedisLease
from repertory.coordination.redis_server import RedisServer
from repertory.index.qdrant import QdrantStore
from repertory.settings import load
from repertory.stats import Stats
from repertory_query.backend.service import Service
from tests.support.builders import indexed_ids, write_skill
from tests.support.command_line import user_environment
from tests.support.logged_process import LoggedProcess
from tests.support.model_folders import write_model
from tests.support.redis_server import RedisProcess


class Watches:
    """The processes of a team without a query service; the test starts the watch services.

    Attributes:
        processes: The worker, then the watch services.
    """

    def __init__(self, root: Path, redis: RedisProcess, qdrant_url: str) -> None:
        self._root = root
        self.redis = redis
        self.store = QdrantStore(qdrant_url)
        for name in self.store.collections():
            if name.startswith("repertory_"):
                self.store.drop(name)
        self.server = RedisServer(redis.url)
        self.lease = RedisLease(self.server)
        self._environment = user_environment(root / "home", root / "data") | {
            "REPERTORY_REDIS_URL": redis.url,
            "REPERTORY_QDRANT_URL": qdrant_url,
            "REPERTORY_SEARCH_MODEL": str(write_model(root / "model")),
            "REPERTORY_WATCH_RECONCILE": "1",
        }
        self.processes: list[LoggedProcess] = []
        self.start("worker", "worker")

    def start(self, folder: str, command: str = "watch") -> LoggedProcess:
        """Start a process in a folder; a watch service's folder gets a skill of the same name."""
        directory = self._root / folder
        directory.mkdir(exist_ok=True)
        if command == "watch":
            self.save(folder, folder)
        log = self._root / f"{folder}-{len(self.processes)}.log"
        process = LoggedProcess([command], directory, log, self._environment)
        process.start()
        self.processes.append(process)
        return process

    def save(self, folder: str, name: str) -> None:
        """Save a skill in a folder."""
        write_skill(self._root / folder, name, f"{name} and nothing else", "")

    def remove(self, folder: str, name: str) -> None:
        """Delete a skill in a folder."""
        shutil.rmtree(self._root / folder / "skills" / name)

    def items(self) -> list[str]:
        """The ids of the items in the active collection."""
        return indexed_ids(self.store, "repertory")

    def stats(self) -> Stats:
        """The statistics that a query service would return."""
        parts = Parts(load({}, self._root, self._environment), self._root)
        with ThreadPoolExecutor(1) as reader, parts.live_search(reader) as live:
            return Service(parts, live, parts.queue()).stats()

    def published(self) -> list[int]:
        """The number of collections that each watch service has published."""
        return [len(one.events("collection_published")) for one in self.processes[1:]]


@pytest.fixture
def watches(tmp_path: Path, qdrant_url: str) -> Iterator[Watches]:
    """A worker, Redis, and Qdrant; tests start watch services."""
    with RedisProcess() as redis:
        made = Watches(tmp_path, redis, qdrant_url)
        try:
            yield made
        finally:
            for process in made.processes:
                process.kill()
