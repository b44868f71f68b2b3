"""The server of a directory: at most one runs, and commands find it by the note it leaves.

The note also holds the token of the user who started the server. Only this user can read it, so
only this user's programs can use the server, until there are keys for others.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from repertory.data_directory import SERVERS
from repertory.embedding.models import known
from repertory.errors import ConfigurationError, StoreBusyError, StoreError
from repertory.project.workspace import directory_key
from repertory.settings import Settings
from repertory.system.files import (
    PRIVATE,
    identity,
    make_private,
    read_json,
    unwritable,
    write_json,
)
from repertory.values import NAMESPACE

if TYPE_CHECKING:
    from repertory.remote.client import Client

ALIVE_TIMEOUT_S = 3.0  # for a server to answer that it is alive
STARTING_TIMEOUT_S = 10.0  # the same for a server whose note is younger than this


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """The note that a running server leaves in its data directory, for its user alone.

    Attributes:
        url: Where it answers.
        pid: Its process.
        token: It accepts this as a key with all scopes. Each start of a server makes another.
        directory: The directory whose catalogue it serves.
        namespace: The namespace of its index.
        file, model, device, qdrant_url, mcp_configs: The configuration file, the model, the device,
            the Qdrant server and the MCP configurations that it was given, if any.
    """

    url: str
    pid: int
    token: str
    directory: str
    namespace: str = NAMESPACE
    file: str | None = None
    model: str | None = None
    device: str | None = None
    qdrant_url: str | None = None
    mcp_configs: list[str] = []

    def serves(self, settings: Settings, directory: Path) -> bool:
        """Whether the server has these settings: whatever they name, it was started with.

        The server may have been started with the file that these settings discover.
        """
        asked = note_of(settings, directory, self.url, self.token)
        return (
            asked.directory == self.directory
            and self.file in (asked.file, str(settings.file))
            and asked.namespace == self.namespace
            and asked.model in (None, self.model)
            and asked.qdrant_url in (None, "", self.qdrant_url)
            and asked.mcp_configs in ([], self.mcp_configs)
            and not settings.values.no_cache
        )


def client(
    settings: Settings, directory: Path, timeout_s: float = ALIVE_TIMEOUT_S
) -> "Client | None":
    """The configured server, else the one that runs for this directory, else None.

    A configured server is always used; a recorded server is used only if it is alive and proves
    that it left the note. Only a configured server gets the configured key. If the settings name
    a model that the server was not started with, it is used if its index has that model.

    Args:
        settings: The active settings.
        directory: The directory whose catalogue is asked.
        timeout_s: Seconds for a recorded server to answer, unless it is starting.

    Raises:
        ConfigurationError: This is a team's machine, and its server is not named.
    """
    values = settings.values
    if values.server_url:
        return client_of(values.server_url, settings, values.server_api_key)
    if settings.is_of_team:
        raise ConfigurationError(
            "REPERTORY_REDIS_URL is set, as for a team's server: set REPERTORY_SERVER_URL to the "
            "address of that server, or unset REPERTORY_REDIS_URL to index here."
        )
    note = note_at(settings, directory)
    if note is None:
        return None
    found = _own(note.url, note.token)
    if values.device == "gpu" and note.device not in (None, "gpu"):
        asked = settings.origins.get("device", "this one")
        found.notices = (
            f"The server uses the device {note.device}, so {asked} has no effect; start the "
            "server with it.",
        )
    if _is_new(note_path(settings.data_dir, directory)):
        timeout_s = STARTING_TIMEOUT_S
    if note.serves(settings, directory):
        return found if found.remote.is_alive(timeout_s) else None
    unnamed = replace(settings, values=replace(values, model=None))
    is_ours = note.serves(unnamed, directory) and found.remote.is_alive(timeout_s)
    return found if is_ours and _has_model(found, str(values.model)) else None


def _has_model(server: "Client", name: str) -> bool:
    """Whether a server's index uses this model, although the server was not started with its name.

    It may be the fallback of the default model, for example.
    """
    model = known(name)
    with contextlib.suppress(StoreError):
        return model is not None and server.stats().model == model.slug
    return False


def key_for(url: str, settings: Settings) -> str | None:
    """The configured key, if it is for the server at a URL."""
    named = settings.values.server_url
    is_other = not _same_server(named, url) if named else _note_of(url, settings)
    return None if is_other else settings.values.server_api_key


def client_of(url: str, settings: Settings, api_key: str | None) -> "Client":
    """A client of the server at a URL. It sends nothing before its first request.

    Args:
        url: The URL.
        settings: Their data directory may contain the server's note.
        api_key: The key; without one, the token of the note is used if there is one.

    Raises:
        ConfigurationError: The URL or the key is invalid.
    """
    from repertory.remote.client import Client  # noqa: PLC0415 - not without a server

    if not api_key and (note := _note_of(url, settings)):
        return _own(url, note.token)
    return Client(url, api_key)


def _note_of(url: str, settings: Settings) -> Note | None:
    """The note that a server of this user left at a URL."""
    return next((note for note in notes(settings) if _same_server(note.url, url)), None)


def note_at(settings: Settings, directory: Path) -> Note | None:
    """The note of the server of a directory; None if it is missing, or its process has ended."""
    note = read_json(note_path(settings.data_dir, directory), Note)
    return note if note and _is_running(note.pid) else None


def _is_new(note: Path) -> bool:
    """Whether a server left a note a moment ago: it may not answer yet."""
    with contextlib.suppress(OSError):  # it was just removed
        return time.time() - note.stat().st_mtime < STARTING_TIMEOUT_S
    return False


def notes(settings: Settings) -> list[Note]:
    """The notes of all servers of a data directory whose processes run.

    Notes in another user's data directory are ignored.
    """
    places: list[Path] = []
    with contextlib.suppress(OSError):
        places = sorted((settings.data_dir / SERVERS).glob("*.json"))
    found = (read_json(one, Note) for one in places)
    return [note for note in found if note and _is_running(note.pid)]


def sign_in_url(url: str, token: str) -> str:
    """The address that signs a browser in at a user's own server."""
    return f"{url}/login?token={token}"


def _own(url: str, token: str) -> "Client":
    from repertory.remote.client import Client  # noqa: PLC0415 - not without a server

    return Client(url, token, is_own=True)


def _same_server(one: str, other: str) -> bool:
    """Whether two URLs are the same, however each names this machine."""
    return _local(one) == _local(other)


def _local(url: str) -> str:
    return re.sub(r"^http://(localhost|\[::1\])(?=[:/]|$)", "http://127.0.0.1", url.rstrip("/"))


@contextmanager
def the_only_server(settings: Settings, directory: Path) -> Iterator[Path]:
    """Claim to be the only server of a directory; the data directory must exist.

    Yields:
        The file of the claim. Once it is gone, another process may have the same claim.

    Raises:
        StoreBusyError: Another process is the server of the directory.
        StoreError: The data directory cannot be written.
    """
    place = note_path(settings.data_dir, directory)
    with claimed(place) as is_claimed:
        if not is_claimed:
            note = read_json(place, Note)
            who = f" (process {note.pid} at {note.url})" if note else ""
            raise StoreBusyError(
                f"A server of {directory} is already running{who}; use it or stop it, or give this "
                "one another --data-dir."
            )
        yield lock_of(place)


@contextmanager
def claimed(place: Path) -> Iterator[bool]:
    """Try to claim the place of a note. At the end, remove the note and release the claim.

    Yields:
        Whether this process has the claim.

    Raises:
        StoreError: The data directory cannot be written.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - only to serve

    # Not local to a thread: another thread may release it.
    lock = FileLock(lock_of(place), mode=PRIVATE, thread_local=False)
    try:
        make_private(place.parent)
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    except OSError as exc:
        raise unwritable(place.parent, exc) from exc
    own = identity(lock.lock_file)
    try:
        yield True
    finally:
        if identity(lock.lock_file) == own:  # else the note may be another process's
            with contextlib.suppress(OSError):  # the disk may be read-only now: the lock counts
                place.unlink()
        lock.release()


def announce(settings: Settings, directory: Path, url: str, token: str) -> None:
    """Leave a note that this process is the server of a directory now, at a URL.

    Raises:
        StoreError: The note cannot be written.
    """
    write_json(note_path(settings.data_dir, directory), note_of(settings, directory, url, token))


def note_of(settings: Settings, directory: Path, url: str, token: str) -> Note:
    """The note about this process as the server of a directory."""
    return Note(
        url=url,
        pid=os.getpid(),
        token=token,
        directory=str(directory),
        namespace=settings.values.namespace,
        file=str(settings.named) if settings.named else None,
        model=settings.values.model,
        device=settings.values.device,
        qdrant_url=settings.values.qdrant_url,
        mcp_configs=[str(path) for path in settings.mcp_configs],
    )


def note_path(data_dir: Path, directory: Path) -> Path:
    """The file of the note of a directory's server."""
    return data_dir / SERVERS / f"{directory_key(directory)}.json"


def lock_of(place: Path) -> Path:
    """The lock file of a note."""
    return place.with_suffix(".lock")


def _is_running(pid: int) -> bool:
    """Whether this user has a process with this id. The system may have reused the id."""
    if os.name == "nt":  # a signal would end it there, even this one
        return True
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):  # no process, or another user's
        return False
    return True
