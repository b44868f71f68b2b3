"""Local stand-ins for remote content: git repositories, archives, and servers for them."""

import base64
import contextlib
import io
import ipaddress
import json
import os
import socket
import subprocess
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from repertory.sources.fetched import urls
from repertory.sources.registry import build
from repertory.sources.source import Source
from repertory.system.addresses import Address
from tests.support.builders import write
from tests.support.http_stub import serving
from tests.support.ports import free_port
from tests.support.waiting import until

SKILL = "---\nname: {0}\ndescription: Does {0} for the team.\n---\n\nFollow the steps of {0}.\n"


class Repository:
    """A git repository with a work tree; created if it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.mkdir(parents=True)
            self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Run a git command in the repository, ignoring the machine's configuration."""
        settings = ("user.name=Ada", "user.email=ada@example.com", "commit.gpgsign=false")
        options = [part for one in settings for part in ("-c", one)]
        done = subprocess.run(
            ["git", *options, *arguments],
            cwd=self.path,
            env={"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.path)},
            capture_output=True,
            check=True,
            encoding="utf-8",
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str] | None = None) -> str:
        """Write files, commit everything, and return the commit."""
        for place, text in (files or {}).items():
            write(self.path / place, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "Change it")
        return self.git("rev-parse", "HEAD")

    def add_skills(self, *names: str) -> str:
        """Commit new skills in the folder ``skills``."""
        return self.commit({f"skills/{name}/SKILL.md": SKILL.format(name) for name in names})


def built(place: Path, **entry: object) -> list[Source]:
    """Build the sources of a configuration entry; fetched content is stored in ``store``."""
    return build({"name": "acme", **entry, "store": str(place / "store")}, place)


def ids(sources: list[Source]) -> set[str]:
    """The ids of all items that sources offer now."""
    return {item.id for source in sources for item in source.scan().items}


def refreshed(sources: list[Source]) -> set[str]:
    """Fetch the sources again, and return the ids of all their items."""
    for source in sources:
        source.refresh()
    return ids(sources)


@contextlib.contextmanager
def git_daemon(folder: Path) -> Iterator[str]:
    """Serve the repositories below a folder with ``git daemon``; yields the URL."""
    _need("git-daemon")
    port = free_port()
    command = ["git", "daemon", "--listen=127.0.0.1", f"--port={port}", "--export-all"]
    environment = {**os.environ, "GIT_CONFIG_COUNT": "2"}
    settings = {"safe.directory": "*", "uploadpack.allowFilter": "true"}
    for number, (key, value) in enumerate(settings.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    process = subprocess.Popen(
        [*command, f"--base-path={folder}", "--reuseaddr", str(folder)],
        env=environment,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    try:
        until(lambda: _answers(port), process)
        yield f"git://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, 15)
        process.wait()


@contextlib.contextmanager
def endless_headers(began: threading.Event) -> Iterator[str]:
    """A web server that sends response headers slowly and without end; yields its URL."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(4_096)
                    connection.sendall(b"HTTP/1.1 200 OK\r\n")
                    began.set()
                    for _ in range(600):  # 30 seconds; then the connection is closed
                        connection.sendall(b"X: y\r\n")
                        time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def resolve_names(monkeypatch: pytest.MonkeyPatch, private: str) -> None:
    """Resolve one host to a private address, and all other hosts to a public one."""

    def addresses_of(host: str) -> list[Address]:
        return [ipaddress.ip_address("10.0.0.1" if host == private else "93.184.216.34")]

    monkeypatch.setattr(urls, "addresses_of", addresses_of)


def _need(program: str) -> None:
    """Skip the test if a git subcommand is not installed."""
    folder = subprocess.run(
        ["git", "--exec-path"], capture_output=True, check=True, encoding="utf-8"
    ).stdout.strip()
    if not (Path(folder) / program).exists():
        pytest.skip(f"{program} is not installed")


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Web:
    """The content of a web server, and the requests that it received.

    Attributes:
        files: The files by path.
        repositories: The folder of repositories served at ``/git`` by ``git http-backend``.
        login: The ``user:password`` required at ``/git``; empty if no login is required.
        redirects: Redirect targets by path.
        encoding: The ``Content-Encoding`` of the files; empty for none.
        requests: The requested paths.
        logins: The ``Authorization`` headers of the requests; empty strings if missing.
        is_down: Whether the server answers every request with status 503.
    """

    def __init__(self, repositories: Path | None = None) -> None:
        if repositories:
            _need("git-http-backend")
        self.files: dict[str, bytes] = {}
        self.repositories = repositories
        self.login = ""
        self.redirects: dict[str, str] = {}
        self.encoding = ""
        self.requests: list[str] = []
        self.logins: list[str] = []
        self.is_down = False

    @contextlib.contextmanager
    def published(self) -> Iterator[str]:
        """Serve the content; yields the URL."""
        # Only a plain function becomes a method of the handler class; a bound method would not.
        with serving(lambda request: self._answer(request)) as url:  # noqa: PLW0108
            yield url

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        path = urlsplit(request.path).path
        self.requests.append(path)
        self.logins.append(request.headers.get("Authorization", ""))
        if self.is_down:
            request.send_error(503)
        elif path in self.redirects:
            request.send_response(302)
            request.send_header("Location", self.redirects[path])
            request.end_headers()
        elif path.startswith("/git/") and self.repositories:
            self._backend(request)
        elif path in self.files:
            self._file(request, self.files[path])
        else:
            request.send_error(404)

    def _file(self, request: BaseHTTPRequestHandler, data: bytes) -> None:
        tag = f'"{hash(data)}"'
        is_known = request.headers.get("If-None-Match") == tag
        request.send_response(304 if is_known else 200)
        request.send_header("ETag", tag)
        if self.encoding:
            request.send_header("Content-Encoding", self.encoding)
        if not is_known:
            request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        if not is_known:
            with contextlib.suppress(ConnectionError):
                request.wfile.write(data)

    def _backend(self, request: BaseHTTPRequestHandler) -> None:
        """Answer with ``git http-backend``, like a real git server."""
        expected = "Basic " + base64.b64encode(self.login.encode()).decode()
        if self.login and request.headers.get("Authorization") != expected:
            request.send_response(401)
            request.send_header("WWW-Authenticate", 'Basic realm="git"')
            request.end_headers()
            return
        parts = urlsplit(request.path)
        length = int(request.headers.get("Content-Length") or 0)
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.repositories),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": request.command,
            "PATH_INFO": parts.path.removeprefix("/git"),
            "QUERY_STRING": parts.query,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"],
            env=environment,
            input=request.rfile.read(length),
            capture_output=True,
            check=False,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        request.send_response(int(headers.pop("Status", "200")[:3]))
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of some files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, text in files.items():
            archive.writestr(place, text)
    return data.getvalue()


def tarred(files: Mapping[str, str | bytes], *more: tarfile.TarInfo) -> bytes:
    """A .tar.gz archive of some files and empty members."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for member in more:
            archive.addfile(member)
        for place, text in files.items():
            content = text.encode() if isinstance(text, str) else text
            info = tarfile.TarInfo(place)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def skills(*names: str, folder: str = "skills") -> dict[str, str | bytes]:
    """The files of some skills: texts by path."""
    return {f"{folder}/{name}/SKILL.md": SKILL.format(name) for name in names}


def marketplace(*plugins: Mapping[str, Any], name: str = "acme-tools") -> str:
    """The text of a ``marketplace.json`` in the published format."""
    return json.dumps(
        {
            "$schema": "https://anthropic.com/claude-code/marketplace.schema.json",
            "name": name,
            "owner": {"name": "Acme Platform Team", "email": "platform@acme.example"},
            "metadata": {"description": "The tools that we share.", "version": "1.4.0"},
            "plugins": list(plugins),
        },
        indent=2,
    )
