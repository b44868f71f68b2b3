"""The found configurations that the user has trusted."""

import hashlib
from pathlib import Path

import msgspec

from repertory.bounded import read_bytes
from repertory.errors import StoreError, UsageError
from repertory.files import PRIVATE, write_atomically
from repertory.sources.mcp.config import MAX_FILE_SIZE


class TrustStore:
    """Trusted configuration files and the SHA-256 each had when it was trusted.

    Stored as one JSON file. A configuration that has changed is no longer trusted, and an
    unreadable store trusts nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_trusted(self, config: Path) -> bool:
        """Whether a configuration was trusted and still has the same bytes."""
        known = self._read().get(_key(config))
        try:
            return known is not None and known == _digest(config)
        except OSError:
            return False

    def trust(self, config: Path) -> None:
        """Trust the current content of a configuration.

        Raises:
            UsageError: The file cannot be read.
            StoreError: The data directory cannot be written.
        """
        try:
            digest = _digest(config)
        except OSError as exc:
            raise UsageError(f"{config} cannot be trusted: {exc.strerror}.") from exc
        self._write(self._read() | {_key(config): digest})

    def revoke(self, config: Path) -> None:
        """Revoke the trust in a configuration, if it was trusted."""
        trusted = self._read()
        if trusted.pop(_key(config), None) is not None:
            self._write(trusted)

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, str])
        except (OSError, ValueError):
            return {}

    def _write(self, trusted: dict[str, str]) -> None:
        data = msgspec.json.format(msgspec.json.encode(trusted, order="sorted"))
        try:
            write_atomically(self._path, data, mode=PRIVATE)
        except OSError as exc:
            raise StoreError(f"{self._path} cannot be written: {exc.strerror}.") from exc


def _key(config: Path) -> str:
    return str(config.expanduser().resolve())


def _digest(config: Path) -> str:
    return hashlib.sha256(read_bytes(str(config.expanduser()), MAX_FILE_SIZE)).hexdigest()
