"""The files that the user has trusted, each by the digest of its content."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from repertory.errors import UsageError
from repertory.system.files import changing, json_bytes, write_atomically
from repertory.system.paths import real_path
from repertory.system.untrusted_files import read_bytes

Digests = Mapping[str, str]  # SHA-256 in hex, by the file's key
DigestOf = Callable[[Path, bytes], str]  # the digest of the used part of a file

MAX_FILE_SIZE = 32 * 2**20  # bytes of a trusted file

_ENVIRONMENT = "envFile:"  # prefix of the keys of files trusted only as an environment


class TrustStore:
    """Trusted configuration files, each with its SHA-256 at the time it was trusted.

    Stored as one JSON file. A changed configuration is no longer trusted, and an unreadable store
    trusts nothing. A file that other programs also change is trusted by the digest of the part that
    is used (``of``), or by the digest of the whole file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def covers(self, config: Path, content: bytes, of: DigestOf | None = None) -> bool:
        """Whether a configuration was trusted with exactly this content."""
        trusted = self.digests().get(key_of(config))
        if trusted is None:
            return False
        return trusted == digest_of(content) or (of is not None and trusted == of(config, content))

    def is_trusted(self, config: Path, of: DigestOf | None = None) -> bool:
        """Whether a configuration was trusted and still has the same content.

        The file may change right afterwards; callers that use its content must call ``covers``.
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
        """Trust a configuration and the environment files that it names.

        Args:
            config: The file.
            digest: The digest of the content that the user saw; empty for the current content.
            environments: Files of ``NAME=value`` lines; missing and unreachable ones are skipped.
            of: The digest of the part of the file that is trusted; None for all of it.

        Raises:
            UsageError: The file cannot be read, or has changed since the user saw it.
            StoreError: The store cannot be changed.
        """
        found = {key_of(config): digest_now(config, of)}
        if digest and digest not in found.values():
            raise UsageError(f"{config} changed while it was read; run the command again.")
        there = filter(os.path.isfile, environments)  # unlike the method, it raises nothing
        found |= {environment_key(one): digest_now(one) for one in there}
        with changing(self._path):
            self._write(self._read() | found)

    def revoke(self, config: Path) -> bool:
        """Revoke the trust in a configuration. Return whether it was trusted.

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
        """The digests; empty if the store is damaged, which the next change replaces."""
        try:
            return msgspec.convert(json.loads(self._path.read_bytes()), dict[str, str])
        except (FileNotFoundError, ValueError):
            return {}

    def _write(self, trusted: dict[str, str]) -> None:
        data = json_bytes(dict(sorted(trusted.items())), indent=2)
        write_atomically(self._path, data, is_durable=True)


def key_of(config: Path) -> str:
    """The key of a configuration: its folder, with links resolved, and its name.

    A link to it in another folder counts as another file, because its relative paths would start
    from that folder.
    """
    path = config.expanduser().absolute()
    return os.path.join(real_path(path.parent), path.name)  # noqa: PTH118 - of strings


def environment_key(file: Path) -> str:
    """The key of a file that is trusted only as an environment file."""
    return _ENVIRONMENT + key_of(file)


def digest_of(content: bytes) -> str:
    """The digest of a file's content."""
    return hashlib.sha256(content).hexdigest()


def digest_now(config: Path, of: DigestOf | None = None) -> str:
    """The current digest of a file, or of the part of it that is used.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        content = read_bytes(str(config.expanduser()), MAX_FILE_SIZE)
    except OSError as exc:
        raise UsageError(f"{config} cannot be trusted: {exc.strerror}.") from exc
    return of(config, content) if of else digest_of(content)
