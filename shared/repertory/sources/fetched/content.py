"""Fetched content in the data directory, kept until newer content is complete."""

import contextlib
import hashlib
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock, Timeout

from repertory.errors import SourceError
from repertory.sources.fetched import servers
from repertory.sources.fetched.fetcher import Fetcher, State
from repertory.system.files import PRIVATE, half_of, make_private, unwritable, write_atomically
from repertory.system.paths import real_path
from repertory.text import cut, one_line

CURRENT = "current"  # a link to the folder with the latest content, replaced atomically
LOCK = "lock"
STATE = "state.json"
MAX_ERROR_LENGTH = 500  # characters
LOCK_CHECK_S = 0.5
LOCK_TIMEOUT_S = 600.0  # while another process fetches the same content
_VERSION = "content-"  # prefix of folders with content


class Content:
    """The content of one fetcher, shared by all sources and processes with the same key.

    Args:
        fetcher: Fetches it.
        store: The folder of all fetched content.

    Attributes:
        watches: How many sources of this process watch it, which fetches it at intervals.
    """

    def __init__(self, fetcher: Fetcher, store: Path) -> None:
        self.fetcher = fetcher
        key = msgspec.json.encode([type(fetcher).__name__, fetcher.key()], order="deterministic")
        self.folder = store.absolute() / hashlib.sha256(key).hexdigest()[:16]
        self.watches = 0
        self._unwritten = State()  # the latest state, if it could not be written

    @property
    def path(self) -> Path:
        """The path of the content, present or future. Newer content gets the same path."""
        return self.folder / CURRENT

    @property
    def version(self) -> str:
        """A value that changes whenever the content is replaced."""
        return real_path(self.path)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The configuration entries of the MCP servers that the content declares."""
        return servers.entries_of(self.folder)

    @property
    def is_there(self) -> bool:
        """Whether content was ever fetched."""
        return self.path.exists()

    @property
    def servers_file(self) -> Path:
        """The file that changes with the MCP servers that the content declares."""
        return self.folder / servers.LIST

    def state(self) -> State:
        """The state of the content; if it is missing, only the last attempt and its error."""
        try:
            state = msgspec.json.decode((self.folder / STATE).read_bytes(), type=State)
        except (OSError, msgspec.MsgspecError):
            state = State()
        state = max(state, self._unwritten, key=lambda one: one.tried_at)
        return state if self.is_there else State(tried_at=state.tried_at, error=state.error)

    def refresh(self, *, may_ask: bool = False, max_age_s: float = 0.0) -> bool:
        """Fetch the content, unless it is recent enough or another process has just fetched it.

        After a failure, the error is stored and the old content kept.

        Args:
            may_ask: Whether the user may be asked for a password.
            max_age_s: The age in seconds up to which the content counts as recent.

        Returns:
            Whether the content has changed.

        Raises:
            SourceError: It cannot be fetched.
        """
        began = time.time()
        with self._locked():
            last = self.state()
            # Ignore times in the future: the clock was set back since then.
            if began <= last.tried_at <= time.time() or (
                not last.error and last.checked_at and 0 <= began - last.checked_at < max_age_s
            ):
                if last.error:
                    raise SourceError(last.error)
                return False
            self._clear()
            return self._fetch(last, may_ask=may_ask)

    def _fetch(self, last: State, *, may_ask: bool) -> bool:
        into = self.folder / f"{_VERSION}{secrets.token_hex(8)}"
        try:
            into.mkdir(mode=0o700)
            fetched = self.fetcher.fetch(into, last, may_ask=may_ask)
            now = time.time()
            if fetched is None:
                self._write(msgspec.structs.replace(last, checked_at=now, tried_at=now, error=""))
                return False
            if len(fetched.declared) > servers.MAX_CONFIGURATIONS:
                raise SourceError(
                    f"{self.fetcher.location} declares more than {servers.MAX_CONFIGURATIONS} "
                    "configurations of servers."
                )
            # The old state is wrong from here on, even if this process is killed.
            (self.folder / STATE).unlink(missing_ok=True)
            last = State(checked_at=last.checked_at)
            servers.write_configurations(self.folder, fetched.declared)
            self._switch(into)
            self._write(
                State(
                    revision=fetched.revision,
                    validators=fetched.validators,
                    notes=fetched.notes,
                    checked_at=now,
                    tried_at=now,
                )
            )
        except SourceError as error:
            self._note(error, last)
            raise
        except OSError as error:
            failure = SourceError(str(unwritable(self.folder, error)))
            self._note(failure, last)
            raise failure from error
        finally:
            self._clear()
        return True

    def _switch(self, into: Path) -> None:
        """Point ``path`` to new content, atomically."""
        link = half_of(self.path)
        link.symlink_to(into.name, target_is_directory=True)
        link.replace(self.path)

    def _clear(self) -> None:
        """Remove replaced content and the remains of interrupted fetches."""
        servers.remove_unused_copies(self.folder)
        used = Path(self.version).name
        for path in self.folder.glob(f"{_VERSION}*"):
            if path.name != used:
                shutil.rmtree(path, ignore_errors=True)
        for path in self.folder.glob(".*.tmp"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _note(self, error: SourceError, last: State) -> None:
        """Store why a fetch failed, unless it was cancelled."""
        if not self.fetcher.cancelled.is_set():
            message = cut(one_line(str(error)), MAX_ERROR_LENGTH)
            self._write(msgspec.structs.replace(last, tried_at=time.time(), error=message))

    def _write(self, state: State) -> None:
        self._unwritten = state
        with contextlib.suppress(OSError):  # other processes then fetch it again
            write_atomically(self.folder / STATE, msgspec.json.encode(state))
            self._unwritten = State()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            make_private(self.folder)
            lock = self._lock()
        except OSError as error:
            failure = SourceError(str(unwritable(self.folder, error)))
            self._note(failure, self.state())
            raise failure from error
        try:
            yield
        finally:
            lock.release()

    def _lock(self) -> FileLock:
        """Wait for the lock until the timeout, or until the fetch is cancelled."""
        lock = FileLock(self.folder / LOCK, mode=PRIVATE)
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while time.monotonic() < deadline and not self.fetcher.cancelled.is_set():
            with contextlib.suppress(Timeout):
                lock.acquire(timeout=LOCK_CHECK_S)
                return lock
        is_cancelled = self.fetcher.cancelled.is_set()
        why = "it was interrupted" if is_cancelled else "another process is fetching it"
        raise SourceError(f"{self.fetcher.location} was not fetched: {why}.")
