"""A team server: Redis, Qdrant, the watch service, workers, and the query service as processes."""

import contextlib
import http.client
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode
from urllib.request import urlopen

from repertory.index.qdrant import QdrantStore
from tests.support.builders import save_skill
from tests.support.command_line import user_environment
from tests.support.logged_process import LoggedProcess
from tests.support.ports import free_port
from tests.support.qdrant import QdrantProcess
from tests.support.query_service import MODEL
from tests.support.redis_server import RedisProcess
from tests.support.waiting import TIMEOUT_S, until


class Team:
    """All processes in a temporary folder; a context manager that starts everything.

    Args:
        qdrant_url: A Qdrant server; Repertory's collections there are deleted first. Without a
            URL, the team starts its own server, ``qdrant``, which a test can kill.
        workers: The number of worker processes.
        settings: Environment variables.
        program: The program that runs the `repertory` commands; see ``LoggedProcess``.
    """

    def __init__(
        self,
        qdrant_url: str | None = None,
        *,
        workers: int = 1,
        settings: dict[str, str] | None = None,
        program: Sequence[str] = (),
    ) -> None:
        self._program = program
        self.folder = Path(tempfile.mkdtemp(prefix="repertory-team-"))
        self.project = self.folder / "project"
        (self.project / "skills").mkdir(parents=True)
        self.redis = RedisProcess()
        self.qdrant = QdrantProcess(self.folder / "qdrant")
        self._has_own = qdrant_url is None
        self.qdrant_url = qdrant_url or self.qdrant.url
        self.port = free_port()
        (self.folder / "home").mkdir()
        environment = user_environment(self.folder / "home", self.folder / "data") | {
            "REPERTORY_REDIS_URL": self.redis.url,
            "REPERTORY_QDRANT_URL": self.qdrant_url,
            "REPERTORY_SEARCH_MODEL": MODEL,
            "REPERTORY_SERVER_PORT": str(self.port),
            "REPERTORY_SERVER_REQUESTS_PER_MINUTE": "1000000",
            "REPERTORY_WATCH_RECONCILE": "5",
        }
        self.environment = environment | (settings or {})
        self.watch = self.service("watch", "watch")
        self.api = self.service("api", "api")
        self.others: list[LoggedProcess] = []
        self.workers = [self.service(f"worker-{n}", "worker") for n in range(workers)]

    def __enter__(self) -> Self:
        if self._has_own:
            self.qdrant.start()
        store = QdrantStore(self.qdrant_url)
        for name in store.collections():
            if name.startswith("repertory"):
                store.drop(name)
        for service in self.services:
            service.start()
        return self

    def __exit__(self, _: object, error: object, __: object) -> None:
        for service in self.services:
            service.kill()
        if error is not None:
            for service in self.services:
                print(f"--- {service.log.name}", service.log.read_text("utf-8", "replace")[-2_000:])
        self.redis.stop()
        self.qdrant.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def services(self) -> list[LoggedProcess]:
        """The processes of Repertory, also those that a test has added to ``others``."""
        return [self.watch, self.api, *self.workers, *self.others]

    def service(self, name: str, *command: str) -> LoggedProcess:
        """A `repertory` process of this team, not started yet."""
        log = self.folder / f"{name}.log"
        return LoggedProcess(command, self.project, log, self.environment, program=self._program)

    @property
    def active(self) -> str:
        """The name of the active collection; empty if missing."""
        return QdrantStore(self.qdrant_url).alias("repertory") or ""

    def skill(self, name: str, description: str, body: str = "") -> Path:
        """Save a skill."""
        return save_skill(self.project, name, description, body)

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:  # noqa: ANN401 - JSON
        """Send a request to the query service; returns the status and the JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """The JSON of a GET request to the query service; the status must be 200."""
        status, answer = self.request("GET", path)
        assert status == 200, answer
        return answer

    def metrics(self) -> str:
        """The metrics of the query service in Prometheus format."""
        with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as response:
            text: str = response.read().decode()
        return text

    def search(self, text: str, **more: object) -> Any:  # noqa: ANN401 - JSON
        """The answer of the query service to a search."""
        return self.get(f"/search?{urlencode({'q': text, **more})}")

    def first(self, text: str) -> str:
        """The id of the best hit; empty without hits or while the service is unavailable."""
        try:
            status, answer = self.request("GET", f"/search?{urlencode({'q': text})}")
        except OSError:
            return ""
        return answer["results"][0]["toolId"] if status == 200 and answer["results"] else ""

    def item(self, item_id: str) -> Any:  # noqa: ANN401 - JSON
        """One item; None if missing."""
        status, answer = self.request("GET", f"/items/{quote(item_id)}")
        return answer if status == 200 else None

    def ready(self, seconds: float = TIMEOUT_S) -> None:
        """Wait until searches are answered."""
        self.wait(lambda: self.request("GET", "/readyz")[0] == 200, seconds)

    def wait(self, is_so: Callable[[], object], seconds: float = TIMEOUT_S) -> None:
        """Wait until a condition is true; connection errors count as false."""

        def is_so_now() -> object:
            with contextlib.suppress(OSError):
                return is_so()
            return False

        until(is_so_now, seconds=seconds)

    def texts_embedded(self) -> int:
        """The number of texts that all workers have embedded, according to their logs."""
        return sum(
            one["texts"] for worker in self.workers for one in worker.events("texts_embedded")
        )
