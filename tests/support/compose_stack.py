"""A team server started from the compose file, under a unique project name."""

import contextlib
import http.client
import json
import random
import re
import shutil
import socket
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode
from uuid import uuid4

import yaml

from tests.support.builders import save_skill
from tests.support.container_engine import Engine
from tests.support.container_images import ROOT
from tests.support.query_service import bearer
from tests.support.waiting import until

OURS = ("watch", "worker", "query")
SERVICES = ("qdrant", "redis", *OURS)

_COPIED = ("docker-compose.yml", ".dockerignore", "pyproject.toml", "README.md", "LICENSE")
_COPIED_FOLDERS = ("deploy", "encoder", "shared", "services", "workers")
_NOT_COPIED = ("__pycache__", "*.egg-info", ".env", "mcp.env")  # .env files hold the user's secrets
_TIMEOUT_S = 300.0
_LINES = "40"


def release(folder: Path, version: str) -> Path:
    """A copy of this source tree with another package version."""
    folder.mkdir()
    for name in _COPIED:
        shutil.copy(ROOT / name, folder)
    for name in _COPIED_FOLDERS:
        ignored = shutil.ignore_patterns(*_NOT_COPIED)
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    file = folder / "pyproject.toml"
    text = file.read_text("utf-8")
    file.write_text(
        re.sub(r'^version = ".*"$', f'version = "{version}"', text, flags=re.MULTILINE), "utf-8"
    )
    return folder


def release_of(folder: Path, commit: str) -> Path:
    """Extract the source tree of a commit into a folder."""
    folder.mkdir()
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=packed.stdout, check=True)
    return folder


def version_of(tree: Path) -> str:
    """The package version of a source tree."""
    project = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["version"])


class Stack:
    """A catalogue and its containers; leaving the context removes containers and images.

    Args:
        engine: The container engine.
        images: The variables of the compose file that name images.
        folder: An empty folder, used for the catalogue.
    """

    def __init__(self, engine: Engine, images: dict[str, str], folder: Path) -> None:
        self.key = ""  # sent with each request
        # Podman cannot publish a range of ports.
        self.most_replicas = 1 if engine.program == "podman" else 4
        self._engine = engine
        self._folder = folder
        self._catalogue = folder / "catalogue"
        (self._catalogue / "skills").mkdir(parents=True)
        self._project = f"repertory-test-{uuid4().hex[:8]}"
        self._tree: Path | None = None
        self._images: set[str] = set()
        self._settings = images | {
            "REPERTORY_CATALOGUE": str(self._catalogue),
            "REPERTORY_EXTRAS": "team,offline",
            "REPERTORY_SEARCH_MODEL": "repertory",
            "REPERTORY_PUBLISH": f"127.0.0.1:{_free_ports(self.most_replicas)}",
            "REPERTORY_SERVER_REQUESTS_PER_MINUTE": "1000000",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._tree:
            self._compose("down", "--volumes", "--timeout", "5")
        for image in self._images:
            if self._engine.has(image):
                self._engine.run("rmi", "--force", image)

    def up(self, tree: Path, **replicas: int) -> None:
        """Build the images of a source tree and replace outdated containers.

        Args:
            tree: The folder with the compose file; its name becomes the tag of the images.
            replicas: The number of containers by service; 1 by default.
        """
        self._tree = tree
        # The images get names of their own, so that the user's images are not overwritten.
        names = {one: f"{self._project}-{one}:{tree.name}" for one in OURS}
        self._images.update(names.values())
        override = {"services": {one: {"image": image} for one, image in names.items()}}
        self._override.write_text(yaml.safe_dump(override), "utf-8")
        scales = [
            word for name, count in replicas.items() for word in ("--scale", f"{name}={count}")
        ]
        self._compose("up", "--build", "--detach", "--wait", *scales)

    def containers(self, service: str) -> list[str]:
        """The ids of a service's containers."""
        labels = (f"project={self._project}", f"service={service}")
        filters = [f"--filter=label=com.docker.compose.{label}" for label in labels]
        return self._engine.run("ps", "--quiet", *filters).split()

    def crash(self, container: str) -> None:
        """Kill the processes of a container from within, as a crash does, and wait for a restart.

        A container killed through the engine would not be restarted.
        """
        before = self._state(container)["StartedAt"]
        with contextlib.suppress(AssertionError):  # the shell may end with the container
            self._engine.run("exec", container, "sh", "-c", "kill -9 -1")
        self.wait(lambda: self._state(container)["StartedAt"] != before)

    def is_healthy(self, container: str) -> bool:
        """Whether a container's health check succeeds."""
        return bool(self._state(container)["Health"]["Status"] == "healthy")

    def repertory(self, *arguments: str) -> str:
        """Run a ``repertory`` command in the first query container; returns its output."""
        (container, *_) = self.containers("query")
        key = ["--env", f"REPERTORY_SERVER_API_KEY={self.key}"] if self.key else []
        return self._engine.run("exec", *key, container, "repertory", *arguments)

    def skill(self, name: str, description: str) -> None:
        """Save a skill in the catalogue."""
        save_skill(self._catalogue, name, description)

    def ports(self) -> list[int]:
        """The ports of the query containers."""
        published = [self._engine.run("port", one, "7700/tcp") for one in self.containers("query")]
        return [int(one.splitlines()[0].rpartition(":")[2]) for one in published]

    def get(self, path: str, port: int = 0, key: str | None = None) -> tuple[int, Any]:
        """Send a GET request to a query container, by default the first.

        Returns:
            The HTTP status and the parsed JSON.
        """
        token = self.key if key is None else key
        connection = http.client.HTTPConnection("127.0.0.1", port or self.ports()[0], timeout=30)
        try:
            headers = bearer(token) if token else {}
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def stats(self) -> Any:  # noqa: ANN401 - JSON
        """The statistics from the first query container."""
        status, answer = self.get("/stats")
        assert status == 200, answer
        return answer

    def best(self, text: str, port: int) -> str:
        """The id of a query container's best hit; empty without a hit or without hybrid search."""
        status, answer = self.get(f"/search?{urlencode({'q': text})}", port)
        if status != 200 or answer["mode"] != "hybrid" or not answer["results"]:
            return ""
        return str(answer["results"][0]["toolId"])

    def finds(self, text: str, item: str) -> bool:
        """Whether an item is the best hit of every query container."""
        ports = self.ports()
        return bool(ports) and all(self.best(text, port) == item for port in ports)

    def wait(self, is_so: Callable[[], object]) -> None:
        """Wait until a condition is true; connection errors count as false."""

        def is_so_now() -> object:
            with contextlib.suppress(OSError, http.client.HTTPException):
                return is_so()
            return False

        try:
            until(is_so_now, seconds=_TIMEOUT_S)
        except AssertionError as exc:
            exc.add_note(self._logs())
            raise

    @property
    def _override(self) -> Path:
        return self._folder / "override.yml"

    def _compose(self, *arguments: str) -> str:
        assert self._tree
        files = ("--file", self._tree / "docker-compose.yml", "--file", self._override)
        return self._engine.compose(
            "--project-name", self._project, *files, *arguments, settings=self._settings
        )

    def _state(self, container: str) -> dict[str, Any]:
        (described,) = json.loads(self._engine.run("inspect", container))
        state: dict[str, Any] = described["State"]
        return state

    def _logs(self) -> str:
        return self._compose("logs", "--no-color", "--tail", _LINES)


def _free_ports(count: int) -> str:
    """A range of unused ports in the notation of compose files."""
    while True:
        first = random.randrange(20_000, 30_000)
        if all(_is_free(port) for port in range(first, first + count)):
            return f"{first}-{first + count - 1}" if count > 1 else str(first)


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        try:
            attempt.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
