"""The files that the user has trusted, and whether a path lies in a folder."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from repertory.bounded import followed, is_inside, listed_path, read_bytes, real_path
from repertory.errors import UsageError
from repertory.files import changing, json_bytes, write_atomically

Digests = Mapping[str, str]  # SHA-256 in hex by the key of a file
DigestOf = Callable[[Path, bytes], str]  # of the part of a file that is used

MAX_FILE_SIZE = 32 * 2**20  # bytes of a trusted file

_ENVIRONMENT = "envFile:"  # before the keys of files that are trusted as an environment alone


class TrustStore:
    """Trusted configuration files and the SHA-256 each had when it was trusted.

    Stored as one JSON file. A configuration that has changed is no longer trusted, and an
    unreadable store trusts nothing. A file that other programs change for purposes of their own is
    trusted by the digest of the part that is used (``of``), or by that of the whole file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def covers(self, config: Path, content: bytes, of: DigestOf | None = None) -> bool:
        """Whether a configuration was trusted with this content, which the caller then uses."""
        trusted = self.digests().get(key_of(config))
        if trusted is None:
            return False
        return trusted == digest_of(content) or (of is not None and trusted == of(config, content))

    def is_trusted(self, config: Path, of: DigestOf | None = None) -> bool:
        """Whether a configuration was trusted and still has the same content.

        The file may change at once: who uses its content asks ``covers``.
        """
        try:
            return self.covers(config, read_bytes(str(config.expanduser()), MAX_FILE_SIZE), of)
        except OSError:
            return False

    def digests(self) -> dict[str, str]:
        """The digest of every trusted file, by its key."""
        try:
            return self._read()
        except OSError:
            return {}

    def trust(
        self,
        config: Path,
        digest: str = "",
        environments: Iterable[Path] = (),
        of: DigestOf | None = None,
    ) -> None:
        """Trust a configuration, and the environment files that it names.

        Args:
            config: The file.
            digest: The digest of what the user was shown; empty for the current content.
            environments: Files of ``NAME=value`` lines; a missing one is not trusted.
            of: The digest of the part of the file that is trusted; None for all of it.

        Raises:
            UsageError: The file cannot be read, or has changed since.
            StoreError: The store cannot be changed.
        """
        found = {key_of(config): digest_now(config, of)}
        if digest and digest not in found.values():
            raise UsageError(f"{config} changed while it was read; run the command again.")
        found |= {environment_key(one): digest_now(one) for one in environments if one.is_file()}
        with changing(self._path):
            self._write(self._read() | found)

    def revoke(self, config: Path) -> bool:
        """Revoke the trust in a configuration; whether it was trusted.

        Raises:
            StoreError: The store cannot be changed.
        """
        with changing(self._path):
            trusted = self._read()
            was_trusted = trusted.pop(key_of(config), None) is not None
            if was_trusted:
                self._write(trusted)
        return was_trusted

    def _read(self) -> dict[str, str]:
        """The digests; none from a damaged store, which the next change replaces."""
        try:
            return msgspec.convert(json.loads(self._path.read_bytes()), dict[str, str])
        except (FileNotFoundError, ValueError):
            return {}

    def _write(self, trusted: dict[str, str]) -> None:
        data = json_bytes(dict(sorted(trusted.items())), indent=2)
        write_atomically(self._path, data, is_durable=True)


def key_of(config: Path) -> str:
    """The key of a configuration: its folder without links, and its name.

    A link in another folder is another file: what it names would be relative to that folder.
    """
    path = config.expanduser().absolute()
    return os.path.join(real_path(path.parent), path.name)  # noqa: PTH118 - of strings


def environment_key(file: Path) -> str:
    """The key of an environment file, which is trusted as nothing else."""
    return _ENVIRONMENT + key_of(file)


def digest_of(content: bytes) -> str:
    """The digest of a file's content."""
    return hashlib.sha256(content).hexdigest()


def lies_in(path: Path | str, folder: Path | str) -> bool:
    """Whether a path is a folder or lies below it, both without links.

    A path with a link that may not be followed does not.
    """
    real = followed(path)
    return bool(real) and is_inside(listed_path(real), listed_path(folder))


def digest_now(config: Path, of: DigestOf | None = None) -> str:
    """The digest of a file as it is now, or of the part of it that is used.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        content = read_bytes(str(config.expanduser()), MAX_FILE_SIZE)
    except OSError as exc:
        raise UsageError(f"{config} cannot be trusted: {exc.strerror}.") from exc
    return of(config, content) if of else digest_of(content)
