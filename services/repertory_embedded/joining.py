"""One server for all projects of a data directory: the host, and how other processes join it.

The first server of a data directory is the host: it holds a lock, and leaves a note that only its
user can read. A second server sends the host the directory that it would have served, and keeps
the connection open. The host serves the directory until the connection ends; see
``repertory_embedded.projects``.
"""

import http.client
import json
import os
import select
import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from repertory.data_directory import SERVERS
from repertory.errors import StoreError, UsageError
from repertory.remote.requests import RemoteServer
from repertory.remote.running import claimed
from repertory.settings import Settings
from repertory.system.files import read_json, write_json
from repertory.system.paths import expanded
from repertory.values import PATHS
from repertory.wire import PROJECTS, WantedProject

ANSWER_TIMEOUT_S = 60.0  # for the host to open a project


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a whole server, which all its projects must agree on."""

    release: str
    host: str
    requests_per_minute: int
    home: str

    @classmethod
    def of(cls, settings: Settings) -> "Terms":
        """The terms of some settings."""
        return cls(
            release=version("repertory"),
            host=settings.values.host,
            requests_per_minute=settings.values.requests_per_minute,
            home=str(Path.home()),
        )


class HostNote(msgspec.Struct, frozen=True, kw_only=True):
    """The note of the host, in a file of its user.

    Attributes:
        url: The URL at which it answers.
        pid: Its process id.
        secret: The token of the user's own processes, which may also add projects.
        terms: The terms of all its projects.
    """

    url: str
    pid: int
    secret: str
    terms: Terms

    def check(self, settings: Settings) -> None:
        """Check that a process with these settings can join the host.

        Raises:
            UsageError: It cannot; the message says why.
        """
        port, origin = urlsplit(self.url).port, settings.origins.get("port")
        if origin and settings.values.port != port:
            raise UsageError(
                f"The server at {self.url} cannot be joined: {origin} asks for port "
                f"{settings.values.port}."
            )
        own = Terms.of(settings)
        differing = [
            name.replace("_", " ")
            for name in Terms.__struct_fields__
            if getattr(own, name) != getattr(self.terms, name)
        ]
        if differing:
            names = ", ".join(differing)
            raise UsageError(
                f"The server at {self.url} cannot be joined: it has other settings ({names})."
            )
        model = settings.values.model or "/"
        # Unlike ``Path.is_dir``, it raises nothing.
        if os.path.isdir(model) and not os.path.isabs(model):  # noqa: PTH112, PTH117 - of strings
            raise UsageError(
                f"The server at {self.url} cannot be joined: the model {model} is a relative path."
            )


class Joined:
    """A project that the host serves for this process. A context manager.

    Attributes:
        url: The URL of the project.
        pid: The process id of the host.
        key: A key with all scopes on the host.
        ignored_settings: The settings of this process that have no effect, since the host had
            already opened the project with others.
    """

    def __init__(
        self,
        url: str,
        host: HostNote,
        connection: http.client.HTTPConnection,
        ignored_settings: Sequence[str],
    ) -> None:
        self.url = url
        self.ignored_settings = tuple(ignored_settings)
        self.pid = host.pid
        self.key = host.secret
        self._connection = connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def lasts(self, seconds: float) -> bool:
        """Wait for some seconds, and return whether the host still serves the project."""
        connected: socket.socket = self._connection.sock
        if not select.select([connected], [], [], seconds)[0]:
            return True
        try:
            received = connected.recv(4_096)
        except OSError:
            return False
        return bool(received) and not received.strip()  # a line break belongs to the answer


def hosting(settings: Settings) -> AbstractContextManager[bool]:
    """Try to become the host of a data directory, which must exist; yields whether it succeeded.

    Raises:
        StoreError: The data directory cannot be written.
    """
    return claimed(_place(settings))


def invite(settings: Settings, url: str, secret: str) -> None:
    """Write the note of the host, which is this process.

    Raises:
        StoreError: The note cannot be written.
    """
    note = HostNote(url=url, pid=os.getpid(), secret=secret, terms=Terms.of(settings))
    write_json(_place(settings), note)


def join(settings: Settings, directory: Path) -> Joined:
    """Ask the host of the data directory to serve a directory.

    Raises:
        StoreError: The host cannot be reached: it is starting or ending.
        UsageError: It cannot be joined with these settings; the message says why.
    """
    host = read_json(_place(settings), HostNote)
    if host is None:
        raise StoreError(
            f"The server of {settings.data_dir} has not written its address yet; it may still be "
            "starting."
        )
    host.check(settings)
    # Another program may have taken over the port of a host that crashed.
    if not RemoteServer(host.url, host.secret, is_own=True).is_alive(ANSWER_TIMEOUT_S):
        raise StoreError(f"The server at {host.url} cannot be joined: it does not answer.")
    wanted = WantedProject(
        directory=str(directory),
        flags=_plain(settings),
        environment=dict(settings.variables),
    )
    body = json.dumps(msgspec.to_builtins(wanted))  # escapes names that are not valid Unicode
    address = urlsplit(host.url)
    connection = http.client.HTTPConnection(
        address.hostname or "", address.port, timeout=ANSWER_TIMEOUT_S
    )
    try:
        headers = {
            "Authorization": f"Bearer {host.secret}",
            "Content-Type": "application/json",
        }
        connection.request("POST", PROJECTS, body, headers)
        response = connection.getresponse()
        # The answer continues until the project ends, so only its first line is read.
        first = response.readline() if response.status == 200 else response.read()
        if not first:
            raise http.client.HTTPException("it ended before it answered")
        answer = json.loads(first)
    except (OSError, http.client.HTTPException, ValueError) as error:
        connection.close()
        raise StoreError(f"The server at {host.url} cannot be joined: {error}.") from error
    if response.status != 200:
        connection.close()
        detail = str(answer.get("detail", ""))
        kind = StoreError if response.status == 503 else UsageError
        raise kind(detail or f"The server at {host.url} answers with status {response.status}.")
    return Joined(host.url + answer["path"], host, connection, answer.get("ignored_settings", ()))


def _plain(settings: Settings) -> dict[str, Any]:
    """The flags as JSON, without the data directory, which is that of the host.

    Raises:
        ConfigurationError: A path names the home of an unknown user.
    """
    plain: dict[str, Any] = msgspec.to_builtins(settings.flags, enc_hook=str)
    plain.pop("data_dir", None)
    # These are relative to our working directory, not the host's; a sandbox is relative to the
    # project.
    for name in PATHS - {"data_dir", "sandbox"}:
        if path := getattr(settings.values, name):
            plain[name] = str(expanded(path).absolute())
    return plain


def _place(settings: Settings) -> Path:
    return settings.data_dir / SERVERS / "host.json"
