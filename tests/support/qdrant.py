"""A Qdrant server for tests across processes: a real one if available, else the stand-in."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from tests.support.ports import free_port

IMAGE = "qdrant/qdrant:v1.16.3"

_ROOT = Path(__file__).parents[2]


class QdrantProcess:
    """The stand-in as a process that survives a kill; a context manager.

    Args:
        directory: Its data; by default a temporary directory.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._kept = directory is not None
        self._directory = directory or Path(tempfile.mkdtemp(prefix="repertory-qdrant-"))
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Its URL, also after a restart."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "tests.support.qdrant_server", "--port", str(self._port)]
        self._process = subprocess.Popen(
            [*command, "--directory", str(self._directory)],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout
        assert self._process.stdout.readline().strip() == self.url

    def kill(self) -> None:
        """End it with kill -9, unless it has ended."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        if not self._kept:
            shutil.rmtree(self._directory)


@pytest.fixture(scope="session")
def qdrant_url() -> Iterator[str]:
    """A server: that of REPERTORY_TEST_QDRANT_URL, one in Docker, or the stand-in."""
    if url := os.environ.get("REPERTORY_TEST_QDRANT_URL"):
        yield url
    elif _docker_has_image():
        with _container() as url:
            yield url
    else:
        with QdrantProcess() as server:
            yield server.url


def _docker_has_image() -> bool:
    """Whether a Docker engine answers, and has the image or can pull it."""

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
    # Imported here: most machines that run the tests have no Docker engine.
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415
    from testcontainers.core.wait_strategies import HttpWaitStrategy  # noqa: PLC0415

    with (
        DockerContainer(IMAGE)
        .with_exposed_ports(6333)
        .waiting_for(HttpWaitStrategy(6333, "/readyz")) as container
    ):
        yield f"http://{container.get_container_host_ip()}:{container.get_exposed_port(6333)}"
