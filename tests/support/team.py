"""A team's server as it runs: Redis, Qdrant, watch, workers and queries, each a process."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode
from urllib.request import urlopen

from repertory.index.qdrant import QdrantStore
from tests.support.ports import free_port
from tests.support.qdrant import QdrantProcess
from tests.support.redis_server import RedisProcess

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
PATIENCE = 60.0  # seconds; only what hangs takes as long


class Service:
    """One `repertory` command that runs until it is ended, with its log."""

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, env: dict[str, str]
    ) -> None:
        self.log = folder / f"{name}.log"
        self._command = [sys.executable, "-m", "repertory_admin", *command]
        self._folder = folder
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; its log goes on."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder / "project",
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End it and its children with kill -9; what has ended is passed over."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def terminate(self) -> int:
        """Ask it to end, and return its exit code."""
        assert self._process
        self._process.terminate()
        return self._process.wait(PATIENCE)

    def events(self, event: str) -> list[dict[str, Any]]:
        """What it logged under a name."""
        found = []
        for line in self.log.read_text("utf-8", "replace").splitlines():
            try:
                one = json.loads(line)
            except ValueError:
                continue
            if isinstance(one, dict) and one.get("event") == event:
                found.append(one)
        return found


class Team:
    """All of it, in a folder of its own. A context manager, which starts everything.

    Args:
        qdrant_url: A Qdrant server, of which everything of ours is deleted first; without one, the
            team has one of its own, ``qdrant``, that can be killed.
        workers: How many worker processes there are.
        settings: Environment variables.
    """

    def __init__(
        self,
        qdrant_url: str | None = None,
        *,
        workers: int = 1,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="repertory-team-"))
        self.project = self.folder / "project"
        (self.project / "skills").mkdir(parents=True)
        self.redis = RedisProcess()
        self.qdrant = QdrantProcess(self.folder / "qdrant")
        self._has_own = qdrant_url is None
        self.qdrant_url = qdrant_url or self.qdrant.url
        self.port = free_port()
        (self.folder / "home").mkdir()
        names = ("PATH", "LANG", "PYTHONPATH")
        environment = {name: os.environ[name] for name in names if name in os.environ}
        environment |= {
            "HOME": str(self.folder / "home"),
            "HF_HUB_OFFLINE": "1",
            "REPERTORY_REDIS_URL": self.redis.url,
            "REPERTORY_QDRANT_URL": self.qdrant_url,
            "REPERTORY_DATA_DIR": str(self.folder / "data"),
            "REPERTORY_SEARCH_MODEL": MODEL,
            "REPERTORY_SERVER_PORT": str(self.port),
            "REPERTORY_SERVER_REQUESTS_PER_MINUTE": "1000000",
            "REPERTORY_WATCH_RECONCILE": "5",
        }
        self.environment = environment | (settings or {})
        self.watch = self._service("watch", "watch")
        self.api = self._service("api", "api")
        self.workers = [self._service(f"worker-{n}", "worker") for n in range(workers)]

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for service in self.services:
            service.kill()
        if error is not None:
            for service in self.services:
                print(f"--- {service.log.name}", service.log.read_text("utf-8", "replace")[-2_000:])
        self.redis.stop()
        self.qdrant.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def services(self) -> list[Service]:
        """The processes that are ours."""
        return [self.watch, self.api, *self.workers]

    def skill(self, name: str, description: str, body: str = "") -> Path:
        """Save a skill at once, as an editor does: a temporary file is renamed."""
        folder = self.project / "skills" / name
        folder.mkdir(parents=True, exist_ok=True)
        half = folder / "SKILL.md.tmp"
        half.write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n", "utf-8")
        return half.replace(folder / "SKILL.md")

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:  # noqa: ANN401 - JSON
        """Ask the query service: the status and the JSON of its answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """What the query service answers, which must be 200."""
        status, answer = self.request("GET", path)
        assert status == 200, answer
        return answer

    def metrics(self) -> str:
        """What Prometheus is told."""
        with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as response:
            text: str = response.read().decode()
        return text

    def search(self, text: str, **more: object) -> Any:  # noqa: ANN401 - JSON
        """Search."""
        return self.get(f"/search?{urlencode({'q': text, **more})}")

    def first(self, text: str) -> str:
        """The id of the best hit, or nothing, also while nothing answers."""
        try:
            status, answer = self.request("GET", f"/search?{urlencode({'q': text})}")
        except OSError:
            return ""
        return answer["results"][0]["toolId"] if status == 200 and answer["results"] else ""

    def item(self, item_id: str) -> Any:  # noqa: ANN401 - JSON
        """One item, or None."""
        status, answer = self.request("GET", f"/items/{quote(item_id)}")
        return answer if status == 200 else None

    def ready(self, seconds: float = PATIENCE) -> None:
        """Wait until searches are answered."""
        self.wait(lambda: self.request("GET", "/readyz")[0] == 200, seconds)

    def wait(self, until: Callable[[], object], seconds: float = PATIENCE) -> None:
        """Wait until something holds; while nothing answers, it does not."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if until():
                    return
            except OSError:
                pass
            assert time.monotonic() < deadline, "it took too long"
            time.sleep(0.05)

    def texts_embedded(self) -> int:
        """How many texts all workers have embedded, by their logs."""
        return sum(
            one["texts"] for worker in self.workers for one in worker.events("texts_embedded")
        )

    def _service(self, name: str, *command: str) -> Service:
        return Service(name, command, self.folder, self.environment)
