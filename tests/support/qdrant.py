"""A Qdrant server for tests across processes: a real one if available, else the stand-in."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

import pytest

from tests.support.ports import free_port
from tests.support.waiting import until

IMAGE = "qdrant/qdrant:v1.16.3"
PROGRAM = os.environ.get("REPERTORY_TEST_QDRANT_PROGRAM", "")

_ROOT = Path(__file__).parents[2]


class QdrantProcess:
    """A server process whose data survives a kill; a context manager that runs it.

    It runs the program given by REPERTORY_TEST_QDRANT_PROGRAM, or the stand-in if that is unset.

    Args:
        directory: The data directory; by default a temporary one.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._kept = directory is not None
        self._directory = directory or Path(tempfile.mkdtemp(prefix="repertory-qdrant-"))
        self._port = free_port()
        self._peers: tuple[int, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The server's URL, which does not change on a restart."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process
        return self._process.pid

    def join(self, own: int, first: int) -> None:
        """Make the program join a cluster when it starts.

        Args:
            own: This node's port for other nodes.
            first: The first node's port for other nodes.
        """
        self._peers = own, first

    def start(self) -> None:
        """Start the server, and wait until it is ready."""
        if PROGRAM:
            self._process = self._start_program()
        else:
            command = [sys.executable, "-m", "tests.support.qdrant_server"]
            command += ["--port", str(self._port), "--directory", str(self._directory)]
            self._process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL)
        until(self.is_ready, self._process)

    def is_ready(self) -> bool:
        """Whether the server and all its shards are ready."""
        try:
            with urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def is_whole(self) -> bool:
        """Whether this node sees all shard replicas of its cluster as active."""
        copies: list[Any] = []
        for one in self._result("/collections")["collections"]:
            found = self._result(f"/collections/{one['name']}/cluster")
            copies += [*found["local_shards"], *found["remote_shards"]]
        return all(copy["state"] == "Active" for copy in copies)

    def kill(self) -> None:
        """Send SIGKILL to the server, if it was started."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Kill the server and start it again."""
        self.kill()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        if not self._kept:
            shutil.rmtree(self._directory)

    def _result(self, path: str) -> Any:  # noqa: ANN401 - JSON
        with urlopen(f"{self.url}{path}", timeout=30) as answer:
            return json.loads(answer.read())["result"]

    def _start_program(self) -> subprocess.Popen[bytes]:
        """Start the program; its log is next to its data."""
        self._directory.mkdir(exist_ok=True)
        settings = {
            "SERVICE__HOST": "127.0.0.1",
            "SERVICE__HTTP_PORT": str(self._port),
            "SERVICE__GRPC_PORT": str(free_port()),
            "SERVICE__ENABLE_STATIC_CONTENT": "false",
            "STORAGE__STORAGE_PATH": str(self._directory / "storage"),
            "STORAGE__SNAPSHOTS_PATH": str(self._directory / "snapshots"),
            "TELEMETRY_DISABLED": "true",
        }
        command = [PROGRAM]
        if self._peers:
            own, first = (f"http://127.0.0.1:{port}" for port in self._peers)
            command += ["--uri", own, *(["--bootstrap", first] if own != first else [])]
            settings |= {"CLUSTER__ENABLED": "true", "CLUSTER__P2P__PORT": str(self._peers[0])}
        with (self._directory / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self._directory,
                env={f"QDRANT__{name}": value for name, value in settings.items()},
                stdout=log,
                stderr=subprocess.STDOUT,
            )


@contextlib.contextmanager
def cluster_of_programs(size: int) -> Iterator[list[QdrantProcess]]:
    """Run the nodes of one cluster; skips the test if REPERTORY_TEST_QDRANT_PROGRAM is unset."""
    if not PROGRAM:
        pytest.skip("REPERTORY_TEST_QDRANT_PROGRAM names no Qdrant: the stand-in has one node.")
    with contextlib.ExitStack() as running:
        nodes = [QdrantProcess() for _ in range(size)]
        ports = [free_port() for _ in nodes]
        for node, port in zip(nodes, ports, strict=True):
            node.join(port, ports[0])
            running.enter_context(node)
        yield nodes


@pytest.fixture(scope="session")
def qdrant_url() -> Iterator[str]:
    """The URL of a server: REPERTORY_TEST_QDRANT_URL, a Docker container, or a process."""
    if url := os.environ.get("REPERTORY_TEST_QDRANT_URL"):
        yield url
    elif not PROGRAM and _docker_has_image():
        with _container() as url:
            yield url
    else:
        with QdrantProcess() as server:
            yield server.url


def _docker_has_image() -> bool:
    """Whether a Docker engine answers and has the image, or can pull it."""

    def succeeds(*arguments: str, seconds: float = 3) -> bool:
        try:
            subprocess.run(["docker", *arguments], check=True, capture_output=True, timeout=seconds)
        except (OSError, subprocess.SubprocessError):
            return False
        return True

    return succeeds("version") and (
        succeeds("image", "inspect", IMAGE) or succeeds("pull", "--quiet", IMAGE, seconds=90)
    )


@contextlib.contextmanager
def _container() -> Iterator[str]:
    # Imported only here, because most machines that run the tests have no Docker engine.
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415
    from testcontainers.core.wait_strategies import HttpWaitStrategy  # noqa: PLC0415

    with (
        DockerContainer(IMAGE)
        .with_exposed_ports(6333)
        .waiting_for(HttpWaitStrategy(6333, "/readyz")) as container
    ):
        yield f"http://{container.get_container_host_ip()}:{container.get_exposed_port(6333)}"
