"""The server of a directory: at most one runs, and commands find it by the note it leaves."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from repertory.errors import ConfigurationError, StoreBusyError, StoreError
from repertory.files import PRIVATE, make_private
from repertory.settings import Settings
from repertory.values import NAMESPACE, Values
from repertory.workspace import Workspace, read_json, write_json

if TYPE_CHECKING:
    from repertory.client import Client

ALIVE_TIMEOUT_S = 10.0  # for a server to answer that it is alive: it may be starting


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """The note that a running server leaves in its data directory. It holds no secret.

    Attributes:
        url: Where it answers.
        pid: Its process.
        directory: The directory whose catalogue it serves.
        namespace: The namespace of its index.
        file, model, mcp_configs: The configuration file, the model and the MCP configurations that
            it was given, if any.
    """

    url: str
    pid: int
    directory: str
    namespace: str = NAMESPACE
    file: str | None = None
    model: str | None = None
    mcp_configs: list[str] = []

    def serves(self, settings: Settings, directory: Path) -> bool:
        """Whether it can answer for these settings: they may name nothing that it was not given."""
        file = str(settings.named) if settings.named else None
        configs = [str(path) for path in settings.mcp_configs]
        return (
            (self.directory, self.file) == (str(directory), file)
            and self.namespace == settings.values.namespace
            and settings.values.model in (None, self.model)
            and configs in ([], self.mcp_configs)
            and not settings.values.no_cache
        )


def client(settings: Settings, directory: Path) -> "Client | None":
    """The configured server, else the one that runs for this directory, else None.

    A configured server is always used; a recorded server is used only if it is alive.

    Raises:
        ConfigurationError: This is a team's machine, and its server is not named.
    """
    values = settings.values
    if values.server_url:
        return _client(values.server_url, values)
    if values.redis_url and not values.no_cache:
        raise ConfigurationError(
            "REPERTORY_REDIS_URL says that there is a team's server: name it as "
            "REPERTORY_SERVER_URL, or unset the former to index here."
        )
    note = read_json(_place(settings, directory), Note)
    if note is None or not note.serves(settings, directory) or not _is_alive(note.pid):
        return None
    found = _client(note.url, values)
    return found if found.is_alive(ALIVE_TIMEOUT_S) else None


def _client(url: str, values: Values) -> "Client":
    from repertory.client import Client  # noqa: PLC0415 - not without a server

    return Client(url, values.server_api_key)


@contextmanager
def the_only_server(settings: Settings, directory: Path) -> Iterator[None]:
    """Claim to be the only server of a directory; the data directory must exist.

    Raises:
        StoreBusyError: Another process is.
        StoreError: The data directory cannot be written.
    """
    place = _place(settings, directory)
    with claimed(place) as is_claimed:
        if not is_claimed:
            note = read_json(place, Note)
            who = f" (process {note.pid} at {note.url})" if note else ""
            raise StoreBusyError(
                f"A server of {directory} runs already{who}; use it or stop it, or give this one "
                "another --data-dir."
            )
        yield


@contextmanager
def claimed(place: Path) -> Iterator[bool]:
    """Try to be the process that leaves a note; gives whether it is, and removes the note after it.

    Raises:
        StoreError: The data directory cannot be written.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - only to serve

    # Not local to a thread: another thread may release it.
    lock = FileLock(place.with_suffix(".lock"), mode=PRIVATE, thread_local=False)
    try:
        make_private(place.parent)
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    except OSError as exc:
        raise StoreError(
            f"{place.parent} cannot be written: {exc.strerror}; choose another --data-dir."
        ) from exc
    try:
        yield True
    finally:
        place.unlink(missing_ok=True)
        lock.release()


def announce(settings: Settings, directory: Path, url: str) -> None:
    """Leave a note that this process is the server of a directory now, at a URL.

    Raises:
        StoreError: The note cannot be written.
    """
    write_json(_place(settings, directory), note_of(settings, directory, url))


def note_of(settings: Settings, directory: Path, url: str) -> Note:
    """The note about this process as the server of a directory."""
    return Note(
        url=url,
        pid=os.getpid(),
        directory=str(directory),
        namespace=settings.values.namespace,
        file=str(settings.named) if settings.named else None,
        model=settings.values.model,
        mcp_configs=[str(path) for path in settings.mcp_configs],
    )


def _place(settings: Settings, directory: Path) -> Path:
    return settings.data_dir / "servers" / f"{Workspace(settings, directory).directory_key}.json"


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # a signal would end it there, even this one
        return True
    try:
        os.kill(pid, 0)
    except PermissionError:  # another user's
        return True
    except (OSError, OverflowError):
        return False
    return True
