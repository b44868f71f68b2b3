"""A running query service in this process: a real index, engine and queue, and its application."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from repertory.compose import Parts
from repertory.indexing.scan import scan_source
from repertory.settings import Settings, load
from repertory.wire import Refusal
from repertory_query.app import create_app
from repertory_query.service import Service

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
PATIENCE = 60.0  # seconds; only a hanging server takes as long


def skill(project: Path, name: str, description: str) -> None:
    """Write a skill below a project's skills folder."""
    file = project / "skills" / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: {description}\n---\nSteps follow.\n")


def settings_of(project: Path, **flags: object) -> Settings:
    """The settings in a project, with a data directory beside it."""
    return load({"data_dir": str(project.parent / "data"), "model": MODEL} | flags, project, {})


@contextmanager
def looked_at(project: Path, home: Path, **flags: object) -> Iterator["RunningService"]:
    """A running server of an indexed project, whose user has this home directory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        with RunningService(project, **flags) as running:
            running.look()
            yield running


class RunningService:
    """All parts of a server in this process; a context manager.

    Attributes:
        project: The folder that is indexed.
        parts: The parts.
        service: The backend of an application.
    """

    def __init__(self, project: Path, **flags: object) -> None:
        self.project = project
        self.settings = settings_of(project, **flags)
        self.parts = Parts(self.settings, project)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        queue = self._stack.enter_context(self.parts.in_process_queue())
        reader = self._stack.enter_context(ThreadPoolExecutor(2))
        self.live = self._stack.enter_context(self.parts.live_search(reader))
        self.service = Service(self.parts, self.live, queue)
        self._coordinator = self.parts.coordinator(queue)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def look(self) -> None:
        """Scan every source, and return when all items can be searched."""
        catalogue = self.parts.workspace.catalogue()
        self._coordinator.adopt(catalogue)
        wanted = set()
        for source in catalogue.sources:
            scanned = scan_source(source)
            self._coordinator.observe(scanned)
            wanted |= {
                item.metadata_hash() for item in (scanned.scan.items if scanned.scan else ())
            }
        deadline = time.monotonic() + PATIENCE
        while self._found() != wanted:
            assert time.monotonic() < deadline
            self.tick()
        self.tick()

    def tick(self) -> None:
        """Let the coordinator take a step, and report."""
        self._coordinator.tick()
        status = msgspec.to_builtins(self._coordinator.status())
        self.parts.coordination.status.report("watch", status)
        time.sleep(0.05)

    def client(
        self, *, host: str = "localhost", address: str = "127.0.0.1", **flags: object
    ) -> TestClient:
        """A client of an application on this server, with other settings if given.

        Args:
            host: What the client calls the server.
            address: Where the client is.
            flags: Settings of the application.
        """
        app = create_app(self.service, settings_of(self.project, **flags))
        return TestClient(app, base_url=f"http://{host}", client=(address, 50_000))

    def _found(self) -> set[str] | None:
        if not self.live.wait(0):
            return None
        keywords = self.live.engine.keywords
        return {entry.hash for entry in keywords.entries} if keywords else None


def problem(response: Any, status: int) -> str:  # noqa: ANN401 - of httpx or httpx2
    """The words of a problem, which is told as one."""
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert msgspec.convert(told, Refusal).status == status
    assert told["detail"].endswith((".", "?"))
    return str(told["detail"])


def metrics(client: TestClient, **headers: str) -> dict[str, float]:
    """The values of all metrics, by name and labels."""
    text = client.get("/metrics", headers=headers).text
    return {
        f"{sample.name}{json.dumps(sample.labels) if sample.labels else ''}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
