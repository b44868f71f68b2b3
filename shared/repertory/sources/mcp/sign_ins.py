"""Sign-ins at MCP servers with OAuth: tokens, bound to a server's URL and an issuer."""

import contextlib
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from filelock import AsyncFileLock, FileLock, Timeout

from repertory.errors import StoreError
from repertory.system.files import PRIVATE, make_private, write_atomically
from repertory.system.untrusted_files import read_bytes

MAX_FILE_SIZE = 2**20  # bytes
LOCK_TIMEOUT_S = 30.0  # while another process renews the same tokens


class SignIn(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a sign-in. Never shown or logged.

    Attributes:
        server: The server's name when the user signed in.
        key: The digest of the server's URL; the tokens are sent only there.
        issuer: The authorization server that issued the tokens; they are renewed only there.
        client: Our client registration at the issuer (RFC 7591), without a configured secret.
        metadata: The issuer's metadata (RFC 8414).
        resource: The server's metadata (RFC 9728), if it has any.
        at: When the user signed in, in Unix seconds; renewals do not change it.
        tokens: The tokens; None after the issuer has revoked them.
        expires_at: When the access token expires, in Unix seconds; None if unknown.
    """

    server: str
    key: str
    issuer: str
    client: dict[str, Any]
    metadata: dict[str, Any]
    resource: dict[str, Any] | None = None
    at: float = 0.0
    tokens: dict[str, Any] | None = None
    expires_at: float | None = None

    def __repr__(self) -> str:
        """Without any token."""
        return f"SignIn({self.server!r})"

    @property
    def access_token(self) -> str:
        """The access token; empty without one."""
        return str((self.tokens or {}).get("access_token") or "")

    @property
    def is_expired(self) -> bool:
        """Whether the access token has expired."""
        return self.expires_at is not None and time.time() > self.expires_at

    def secrets(self) -> set[str]:
        """The values that must not appear in messages."""
        held = (self.tokens or {}) | self.client
        names = ("access_token", "refresh_token", "client_secret")
        return {str(held[name]) for name in names if held.get(name)}


class SignIns:
    """The stored sign-ins: one file for each server, readable only for its owner.

    Args:
        folder: Their folder; it may be missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, url: str) -> Path:
        """The file of the sign-in at a URL, which may be missing."""
        return self._folder / f"{key_of(url)}.json"

    def read(self, url: str) -> SignIn | None:
        """The sign-in at a URL; None if it is missing or unreadable."""
        found = _read(self.path(url))
        return found if found and found.key == key_of(url) else None

    def write(self, url: str, sign_in: SignIn) -> None:
        """Store the sign-in at a URL. The caller must hold its lock.

        Raises:
            StoreError: The data directory cannot be written.
        """
        path = self.path(url)
        try:
            write_atomically(path, msgspec.json.encode(sign_in), is_durable=True)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be written: {error.strerror}; make the data directory writable."
            ) from error

    def lock(self, url: str) -> AsyncFileLock:
        """The lock for changes of the sign-in. Acquiring it may raise ``filelock.Timeout``.

        Raises:
            StoreError: The data directory cannot be written.
        """
        try:
            make_private(self._folder)
        except OSError as error:
            raise StoreError(f"{self._folder} cannot be made: {error.strerror}.") from error
        return AsyncFileLock(self.path(url).with_suffix(".lock"), LOCK_TIMEOUT_S, PRIVATE)

    def forget(self, server: str, url: str = "") -> bool:
        """Remove the sign-in at a URL; without a URL, all sign-ins for the server's name.

        Returns:
            Whether a sign-in was found.

        Raises:
            StoreError: The data directory cannot be written.
        """
        if url:
            found = [path for path in (self.path(url),) if path.exists()]
        else:
            found = [path for path, one in self._stored() if one.server == server]
        for path in found:
            try:
                with FileLock(path.with_suffix(".lock"), LOCK_TIMEOUT_S, PRIVATE):
                    path.unlink(missing_ok=True)
            except Timeout as error:
                raise StoreError(f"{path} is being renewed; try again.") from error
            except OSError as error:
                raise StoreError(f"{path} cannot be removed: {error.strerror}.") from error
        return bool(found)

    def _stored(self) -> Iterator[tuple[Path, SignIn]]:
        with contextlib.suppress(OSError):
            for path in sorted(self._folder.glob("*.json")):
                if found := _read(path):
                    yield path, found


def key_of(url: str) -> str:
    """The digest of a server's URL, which itself may contain secrets."""
    return hashlib.sha256(url.partition("#")[0].encode()).hexdigest()[:32]


def _read(path: Path) -> SignIn | None:
    try:
        return msgspec.json.decode(read_bytes(str(path), MAX_FILE_SIZE), type=SignIn)
    except (OSError, ValueError):
        return None
