"""The keys that a server accepts: named, with a scope, stored as digests in one file.

A token is 256 random bits, so plain SHA-256 is enough: slow hashes protect secrets that can be
guessed. To replace a key, create the new one, distribute it, and revoke the old one.
"""

import hashlib
import hmac
import logging
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from repertory.errors import ConfigurationError, StoreError, UsageError
from repertory.files import PRIVATE, write_atomically
from repertory.settings import Settings

PREFIX = "rpt_"  # makes a leaked token recognisable
MAX_KEYS = 1_000
LOCK_TIMEOUT_S = 5.0  # while another process changes the file

_log = logging.getLogger(__name__)


class Scope(StrEnum):
    """The permissions of a key; each includes those before it."""

    READ = "read"
    CALL = "call"  # call tools, and functions that change data
    ADMIN = "admin"  # rebuild, retry, and see the searches of others


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One stored key.

    Attributes:
        name: Its owner or purpose; unique.
        scope: Its permissions.
        digest: SHA-256 of its token, in hex.
        made: When it was created, in seconds since the epoch.
    """

    name: str
    scope: Scope
    digest: str
    made: float

    @property
    def scopes(self) -> frozenset[Scope]:
        """The key's scope and all scopes it includes."""
        order = list(Scope)
        return frozenset(order[: order.index(self.scope) + 1])


class Keys:
    """The keys of one file, which is read again whenever it changes. Thread-safe.

    Once the file exists, callers need a key, even if all keys are revoked. If the file disappears
    or becomes unreadable, the active keys stay valid: a mistake locks no caller out and opens
    nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._keys: tuple[Key, ...] | None = None
        self._seen: tuple[int, ...] | None = None
        self._lock = threading.Lock()

    @property
    def required(self) -> bool:
        """Whether a caller needs a key."""
        return self._current() is not None

    def find(self, token: str) -> Key | None:
        """Find the key of a token; None if it is unknown.

        All keys are compared, each in constant time, so the duration reveals nothing.
        """
        digest, found = _digest(token), None
        for key in self._current() or ():
            if hmac.compare_digest(key.digest.encode(), digest.encode()):
                found = key
        return found

    def list(self) -> list[Key]:
        """List all keys, the oldest first.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        try:
            data = self._path.read_bytes()
            keys = msgspec.json.decode(data, type=list[Key])
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigurationError(
                f"The keys in {self._path} cannot be read: {error.strerror}; make the file "
                "readable for the user who runs the server."
            ) from error
        except ValueError as error:
            raise ConfigurationError(
                f"The keys in {self._path} cannot be read: {error}; restore the file, or remove it "
                "and make new keys."
            ) from error
        return keys

    def create(self, name: str, scope: Scope) -> str:
        """Create a key and return its token, which is not stored.

        Raises:
            UsageError: The name is invalid or taken.
            ConfigurationError: The file cannot be read.
            StoreError: It cannot be written.
        """
        if not re.fullmatch(r"[\w.@-]{1,64}", name):
            raise UsageError(
                f"A key cannot be named {name[:80]!r}; use up to 64 letters, digits, '.', '@', "
                "'_' and '-'."
            )
        token = PREFIX + secrets.token_urlsafe(32)
        key = Key(name=name, scope=scope, digest=_digest(token), made=time.time())
        with self._changing():
            keys = self.list()
            if any(other.name == name for other in keys):
                raise UsageError(f"There is a key {name!r} already; revoke it, or name another.")
            if len(keys) >= MAX_KEYS:
                raise UsageError(f"There are {MAX_KEYS:,} keys already; revoke some.")
            self._write([*keys, key])
        return token

    def revoke(self, name: str) -> None:
        """Revoke a key.

        Raises:
            UsageError: No key has that name.
            ConfigurationError: The file cannot be read.
            StoreError: It cannot be written.
        """
        with self._changing():
            keys = self.list()
            kept = [key for key in keys if key.name != name]
            if len(kept) == len(keys):
                raise UsageError(f"There is no key {name!r}; `repertory keys list` shows them.")
            self._write(kept)

    def _current(self) -> tuple[Key, ...] | None:
        """The active keys; None if the file never existed."""
        seen: tuple[int, ...] = ()
        with self._lock:
            try:
                status = self._path.stat()
                seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            except FileNotFoundError:
                return self._keys
            except OSError:  # reading it below reports the error
                pass
            if seen != self._seen:
                self._seen = seen
                try:
                    self._keys = tuple(self.list())
                except ConfigurationError as error:
                    _log.error("keys_unreadable", extra={"reason": str(error)})
                    self._keys = self._keys or ()
            return self._keys

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock of the file, which one process can hold at a time."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self._path}.lock", timeout=LOCK_TIMEOUT_S):
                yield
        except Timeout as error:
            raise StoreError(
                f"Another process is changing {self._path}; try again when it has finished."
            ) from error
        except OSError as error:
            raise StoreError(
                f"{self._path} cannot be written: {error.strerror}; make its folder writable."
            ) from error

    def _write(self, keys: Iterable[Key]) -> None:
        """Replace the file atomically; only its owner may read it."""
        data = msgspec.json.format(msgspec.json.encode(list(keys)))
        write_atomically(self._path, data, mode=PRIVATE)


def keys_of(settings: Settings) -> Keys:
    """The keys of the file that the settings name."""
    given = settings.values.keys
    return Keys(Path(given).expanduser() if given else settings.data_dir / "keys.json")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
