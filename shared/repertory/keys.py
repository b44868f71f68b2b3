"""The keys that a server accepts: named, with a scope, stored as digests in one file.

A token is 256 random bits, so a plain SHA-256 of it is enough: a slow hash guards what can be
guessed, and that cannot be. Several keys are valid at once, which is how one is replaced: make the
new one, hand it out, revoke the old one.
"""

import hashlib
import hmac
import logging
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from repertory.errors import ConfigurationError, StoreError, UsageError
from repertory.settings import Settings

PREFIX = "rpt_"  # so that a token that leaked is known for what it is
MOST_KEYS = 1_000
PATIENCE = 5.0  # seconds to wait for another process that changes the file

_log = logging.getLogger(__name__)


class Scope(StrEnum):
    """What a key allows."""

    READ = "read"
    CALL = "call"  # also to call tools, and functions that change something
    ADMIN = "admin"  # also to rebuild, to retry, and to see what others searched for


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key, as it is stored.

    Attributes:
        name: Whose it is, or what for; unique.
        scope: What it allows.
        digest: SHA-256 of its token, in hex.
        made: When, in seconds since the epoch.
    """

    name: str
    scope: Scope
    digest: str
    made: float

    @property
    def scopes(self) -> frozenset[Scope]:
        """All that it allows."""
        order = list(Scope)
        return frozenset(order[: order.index(self.scope) + 1])


class Keys:
    """The keys of one file, which is read again whenever it has changed. Safe to share by threads.

    Once there is a file, a key is asked for, even if all are revoked. While a file that was there
    is gone or cannot be read, the keys that were in force stay so: a mistake locks nobody out, and
    opens nothing.
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
        """The key of a token; None if none is.

        All keys are compared, each in constant time, so that the time tells nothing.
        """
        digest, found = _digest(token), None
        for key in self._current() or ():
            if hmac.compare_digest(key.digest.encode(), digest.encode()):
                found = key
        return found

    def list(self) -> list[Key]:
        """All keys, the oldest first.

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
                "readable for who runs the server."
            ) from error
        except ValueError as error:
            raise ConfigurationError(
                f"The keys in {self._path} cannot be read: {error}; restore the file, or remove it "
                "and make new keys."
            ) from error
        return keys

    def create(self, name: str, scope: Scope) -> str:
        """Make a key, and return its token, which is stored nowhere.

        Raises:
            UsageError: The name is taken, or cannot be one.
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
            if len(keys) >= MOST_KEYS:
                raise UsageError(f"There are {MOST_KEYS:,} keys already; revoke some.")
            self._write([*keys, key])
        return token

    def revoke(self, name: str) -> None:
        """Make a key invalid.

        Raises:
            UsageError: There is none of that name.
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
        """The keys in force; None if there never was a file."""
        seen: tuple[int, ...] = ()
        with self._lock:
            try:
                status = self._path.stat()
                seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            except FileNotFoundError:
                return self._keys
            except OSError:  # told below, by reading it
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
        """The right to change the file, which one process has at a time."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self._path}.lock", timeout=PATIENCE):
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
        """Replace the file at once, by one that only its owner may read."""
        data = msgspec.json.format(msgspec.json.encode(list(keys)))
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        half = Path(name)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
                file.write(data)
            half.replace(self._path)
        except OSError:
            half.unlink(missing_ok=True)
            raise


def keys_of(settings: Settings) -> Keys:
    """The keys that a server accepts under these settings."""
    given = settings.values.keys
    return Keys(Path(given).expanduser() if given else settings.data_dir / "keys.json")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
