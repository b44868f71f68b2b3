"""Content of others on this machine: git repositories, and servers that publish it."""

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

from repertory.addresses import Address
from repertory.sources.fetched import urls
from repertory.sources.registry import build
from repertory.sources.source import Source
from tests.support.builders import write
from tests.support.http_stub import serving
from tests.support.ports import free_port
from tests.support.waiting import until

SKILL = "---\nname: {0}\ndescription: Does {0} for the team.\n---\n\nFollow the steps of {0}.\n"


class Repository:
    """A git repository with a work tree, which is made if it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.mkdir(parents=True)
            self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Run git in it, without the configuration of the machine."""
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
        """Commit skills in ``skills``."""
        return self.commit({f"skills/{name}/SKILL.md": SKILL.format(name) for name in names})


def built(place: Path, **entry: object) -> list[Source]:
    """The sources of an entry, whose content is kept in ``store`` below a folder."""
    return build({"name": "acme", **entry, "store": str(place / "store")}, place)


def ids(sources: list[Source]) -> set[str]:
    """The ids of what sources offer now."""
    return {item.id for source in sources for item in source.scan().items}


def refreshed(sources: list[Source]) -> set[str]:
    """The ids of what sources offer, once they were fetched again."""
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
    """A web server that never ends the headers of its answers; yields a URL."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(4_096)
                    connection.sendall(b"HTTP/1.1 200 OK\r\n")
                    began.set()
                    for _ in range(600):  # a client that waits longer gets no answer
                        connection.sendall(b"X: y\r\n")
                        time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def resolve_names(monkeypatch: pytest.MonkeyPatch, private: str) -> None:
    """Give one host a private address, and all others a public one."""

    def addresses_of(host: str) -> list[Address]:
        return [ipaddress.ip_address("10.0.0.1" if host == private else "93.184.216.34")]

    monkeypatch.setattr(urls, "addresses_of", addresses_of)


def _need(program: str) -> None:
    """Skip a test where a part of git is not installed."""
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
    """What a web server publishes.

    Attributes:
        files: The files by path.
        repositories: The folder of repositories below ``/git``, for ``git http-backend``.
        login: ``user:password`` that ``/git`` needs; empty for none.
        redirects: Where paths lead.
        encoding: The ``Content-Encoding`` of the files; empty for none.
        requests: The paths that were asked for.
        is_down: Whether it answers with errors.
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
        """Publish it; yields the URL."""
        # A method would be bound to the handler's class only as a function.
        with serving(lambda request: self._answer(request)) as url:  # noqa: PLW0108 - as above
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
        """Answer with ``git http-backend``, as a real git server does."""
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
    """A zip archive of files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, text in files.items():
            archive.writestr(place, text)
    return data.getvalue()


def tarred(files: Mapping[str, str | bytes], *more: tarfile.TarInfo) -> bytes:
    """A .tar.gz archive of files, and of other members."""
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
    """The files of skills."""
    return {f"{folder}/{name}/SKILL.md": SKILL.format(name) for name in names}


def marketplace(*plugins: Mapping[str, Any], name: str = "acme-tools") -> str:
    """A ``marketplace.json`` as published ones are."""
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
