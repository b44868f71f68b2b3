"""A query service in this process: a real index, engine and queue, and its application."""

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from repertory.compose import Parts
from repertory.indexing.in_process_queue import InProcessQueue
from repertory.indexing.scan import scan_source
from repertory.settings import Settings, load
from repertory.wire import Refusal
from repertory_query.app import create_app
from repertory_query.backend.service import Service
from tests.support.waiting import until

MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def settings_of(
    project: Path, environment: Mapping[str, str] | None = None, /, **flags: object
) -> Settings:
    """The settings of a project, with the data directory next to the project."""
    given = {"data_dir": str(project.parent / "data"), "model": MODEL}
    return load(given | flags, project, environment or {})


@contextmanager
def indexed_server(project: Path, home: Path, **flags: object) -> Iterator["RunningService"]:
    """Run the services of a project under a given home directory, and index the project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        with RunningService(project, **flags) as running:
            running.scan()
            yield running


class RunningService:
    """All parts of a server in this process; a context manager that runs them.

    Attributes:
        project: The indexed folder.
        parts: The parts of the server.
        queue: The job queue; a thread runs the jobs.
        live: The live search.
        service: The backend of an application.
    """

    def __init__(self, project: Path, **flags: object) -> None:
        self.project = project
        self.settings = settings_of(project, **flags)
        self.parts = Parts(self.settings, project)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        writer = self._stack.enter_context(closing(self.parts.writer()))
        self.queue = self._stack.enter_context(InProcessQueue(writer, self.parts.coordination))
        reader = self._stack.enter_context(ThreadPoolExecutor(2))
        self.live = self._stack.enter_context(self.parts.live_search(reader))
        self.service = Service(self.parts, self.live, self.queue)
        self._coordinator = self.parts.coordinator(self.queue)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def scan(self, *withheld: str) -> None:
        """Scan all sources, and wait until all items except the withheld ones are searchable."""
        catalogue = self.parts.workspace.catalogue()
        self._coordinator.adopt(catalogue)
        wanted = set()
        for source in catalogue.sources:
            scanned = scan_source(source)
            self._coordinator.observe(scanned)
            wanted |= {
                item.metadata_hash()
                for item in (scanned.scan.items if scanned.scan else ())
                if item.id not in withheld
            }

        def is_found() -> bool:
            self.tick()
            return self._found() == wanted

        def is_whole() -> bool:
            self.tick()
            return not self.live.sources.first_items

        until(is_found)
        until(is_whole)  # the live search has read the report

    def tick(self) -> None:
        """Let the coordinator take a step and report its status."""
        self._coordinator.tick()
        status = msgspec.to_builtins(self._coordinator.status())
        self.parts.coordination.status.report("watch", status)
        time.sleep(0.05)

    def client(
        self, *, host: str = "localhost", address: str = "127.0.0.1", **flags: object
    ) -> TestClient:
        """A client of a new application on this server.

        Args:
            host: The host name that the client sends.
            address: The address of the client.
            flags: Settings of the application.
        """
        app = create_app(self.service, settings_of(self.project, **flags))
        return TestClient(app, base_url=f"http://{host}", client=(address, 50_000))

    def _found(self) -> set[str] | None:
        if not self.live.wait(0):
            return None
        return {entry.hash for entry in self.live.engine.keywords.all()}


def bearer(token: str) -> dict[str, str]:
    """The headers that authenticate a request with a key or a token."""
    return {"Authorization": f"Bearer {token}"}


def problem(response: Any, status: int) -> str:  # noqa: ANN401 - of httpx or httpx2
    """Check the form of a problem response, and return its detail."""
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    refusal = response.json()
    assert msgspec.convert(refusal, Refusal).status == status
    assert refusal["detail"].endswith((".", "?"))
    return str(refusal["detail"])


def metrics(client: TestClient, **headers: str) -> dict[str, float]:
    """The values of all exported metrics, by name and labels."""
    text = client.get("/metrics", headers=headers).text
    return {
        f"{sample.name}{json.dumps(sample.labels) if sample.labels else ''}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def rpc(client: TestClient, method: str, path: str = "/mcp", /, **params: object) -> Any:  # noqa: ANN401 - of httpx or httpx2
    """Send a JSON-RPC request to an MCP endpoint; returns the HTTP response."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post(path, json=message)


def use_tool(client: TestClient, tool: str, path: str = "/mcp", /, **arguments: object) -> Any:  # noqa: ANN401 - of httpx or httpx2
    """Call a tool at an MCP endpoint; returns the HTTP response."""
    return rpc(client, "tools/call", path, name=tool, arguments=arguments)
