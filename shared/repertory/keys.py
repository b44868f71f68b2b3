"""The keys that a server accepts: named, with a scope, stored as digests in one file.

The server of each directory has keys of its own; a team's server has those of its data directory.

A token is 256 random bits, so plain SHA-256 is enough: slow hashes protect secrets that can be
guessed. To replace a key, create the new one, distribute it, and revoke the old one.
"""

import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from repertory.data_directory import KEYS, TEAM_KEYS
from repertory.errors import ConfigurationError, UsageError
from repertory.groups import check_name, checked
from repertory.project.workspace import directory_key
from repertory.settings import Settings
from repertory.system.files import changing, is_gone, signature_of, write_atomically
from repertory.system.paths import expanded
from repertory.text import is_same_secret

PREFIX = "rpt_"  # makes a leaked token recognisable
MAX_KEYS = 1_000

_log = logging.getLogger(__name__)


class Scope(StrEnum):
    """The permissions of a key; each includes those before it."""

    READ = "read"
    CALL = "call"  # call tools, and functions that change data
    ADMIN = "admin"  # manage the server, and see the searches of others

    @property
    def included(self) -> "frozenset[Scope]":
        """The scope and all scopes it includes."""
        order = list(Scope)
        return frozenset(order[: order.index(self) + 1])


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One stored key.

    Attributes:
        name: Its owner or purpose; unique.
        scope: Its permissions.
        digest: SHA-256 of its token, in hex.
        made: When it was created, in seconds since the epoch.
        groups: The groups of its owner, which decide what the key shows.
    """

    name: str
    scope: Scope
    digest: str
    made: float
    groups: tuple[str, ...] = ()

    @property
    def scopes(self) -> frozenset[Scope]:
        """The key's scope and all scopes it includes."""
        return self.scope.included


class Keys:
    """The keys of one file, which is read again whenever it changes. Thread-safe.

    Once the file exists, callers need a key, even if all keys are revoked, until they are reset. If
    the file disappears or becomes unreadable, the active keys stay valid: a mistake locks no caller
    out and opens nothing.

    Args:
        path: The file: a list of keys, or ``null`` if they were reset.
        older: The file that holds the keys until the first change, if there is no other yet.
    """

    def __init__(self, path: Path, older: Path | None = None) -> None:
        self.path = path
        self._older = older
        self._keys: tuple[Key, ...] | None = None
        self._signature: tuple[int, ...] | None = None
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
        for key in self.active():
            if is_same_secret(key.digest, digest):
                found = key
        return found

    def active(self) -> tuple[Key, ...]:
        """The keys that are valid now, without an error if the file cannot be read."""
        return self._current() or ()

    def list(self) -> list[Key]:
        """List all keys, the oldest first.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        return [*(self._stored() or ())]

    def _stored(self) -> tuple[Key, ...] | None:
        """The keys of the file; None if it is missing, or they were reset."""
        file = self._source
        try:
            return msgspec.json.decode(file.read_bytes(), type=tuple[Key, ...] | None)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigurationError(
                f"The keys in {file} cannot be read: {error.strerror}; make the file readable for "
                "the user who runs the server."
            ) from error
        except ValueError as error:
            raise ConfigurationError(
                f"The keys in {file} cannot be read: {error}; restore the file, or remove all keys "
                "with `repertory keys reset`."
            ) from error

    def create(self, name: str, scope: Scope, groups: Sequence[str] = ()) -> str:
        """Create a key and return its token, of which only a digest is stored.

        Raises:
            UsageError: The name is invalid or taken, or a group is invalid.
            ConfigurationError: The file cannot be read.
            StoreError: It cannot be written.
        """
        check_name("key", name)
        token = PREFIX + secrets.token_urlsafe(32)
        key = Key(
            name=name,
            scope=scope,
            digest=_digest(token),
            made=time.time(),
            groups=checked(groups),
        )
        with changing(self.path):
            keys = self.list()
            if any(other.name == name for other in keys):
                raise UsageError(f"There is a key {name!r} already; revoke it, or name another.")
            if len(keys) >= MAX_KEYS:
                raise UsageError(f"There are {MAX_KEYS:,} keys already; revoke some.")
            self._write([*keys, key])
        return token

    def revoke(self, name: str) -> bool:
        """Revoke a key. Return whether it stays in the older file, which other servers may read.

        Raises:
            UsageError: No key has that name.
            ConfigurationError: The file cannot be read.
            StoreError: It cannot be written.
        """
        with changing(self.path):
            keys = self.list()
            kept = [key for key in keys if key.name != name]
            if len(kept) == len(keys):
                raise UsageError(f"There is no key {name!r}; `repertory keys list` shows them.")
            self._write(kept)
        older = Keys(self._older).active() if self._older else ()
        return not {*keys}.difference(kept).isdisjoint(older)

    def reset(self) -> None:
        """Remove all keys: callers need none any more, also at a running server.

        Raises:
            StoreError: The file cannot be written.
        """
        with changing(self.path):
            self._write(None)

    @property
    def _source(self) -> Path:
        """The file that is read."""
        return self._older if self._older and is_gone(self.path) else self.path

    def _current(self) -> tuple[Key, ...] | None:
        """The active keys; None if the file never existed, or they were reset."""
        found: tuple[int, ...] = ()
        with self._lock:
            try:
                found = signature_of(self._source.stat())
            except FileNotFoundError:
                return self._keys
            except OSError:  # reading it below reports the error
                pass
            if found != self._signature:
                self._signature = found
                try:
                    self._keys = self._stored()
                except ConfigurationError as error:
                    _log.error("keys_unreadable", extra={"reason": str(error)})
                    self._keys = self._keys or ()
            return self._keys

    def _write(self, keys: Iterable[Key] | None) -> None:
        """Replace the file atomically; only its owner may read it."""
        stored = None if keys is None else [*keys]
        data = msgspec.json.format(msgspec.json.encode(stored))
        write_atomically(self.path, data, is_durable=True)


def keys_of(settings: Settings, directory: Path) -> Keys:
    """The keys of a directory's server: those of the named file, of the team, or its own."""
    values, data = settings.values, settings.data_dir
    if values.keys:
        return Keys(expanded(values.keys))
    if values.redis_url:  # a team's server; its processes have different directories
        return Keys(data / TEAM_KEYS)
    # In older versions every server had the keys of the data directory: they still lock it.
    own = data / KEYS / f"{directory_key(directory)}.json"
    return Keys(own, data / TEAM_KEYS)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
