"""Fetches an archive over HTTP or from a local path, and unpacks it."""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

from typing_extensions import override

from repertory.catalogue.skill_format import SKILL_FILES
from repertory.errors import SourceError
from repertory.sources.archive.unpacking import unpack
from repertory.sources.fetched.fetcher import Fetched, Fetcher, State
from repertory.sources.fetched.http import get
from repertory.sources.fetched.servers import declared_in
from repertory.sources.fetched.urls import is_http, shown
from repertory.sources.fetched.writing import Writer
from repertory.system.files import signature
from repertory.system.untrusted_files import read_bytes

MAX_ARCHIVE_SIZE = 64 * 2**20  # bytes


class ArchiveFetcher(Fetcher):
    """Fetches the files of an archive.

    Args:
        address: Its URL, or an absolute path.
        sha256: Its required digest, in hex; empty for any.
    """

    def __init__(self, address: str, sha256: str) -> None:
        self.location = shown(address)
        self.cancelled = Event()
        self._address = address
        self._sha256 = sha256

    @override
    def key(self) -> Mapping[str, Any]:
        return {"address": self._address, "sha256": self._sha256}

    @override
    def fetch(self, into: Path, last: State, *, may_ask: bool) -> Fetched | None:
        if self._sha256 and last.revision == self._sha256:
            return None
        data, validators = self._read(last)
        if data is None:
            return None
        revision = hashlib.sha256(data).hexdigest()
        if self._sha256 and revision != self._sha256:
            raise SourceError(
                f"{self.location} has the SHA-256 {revision}, and {self._sha256} is pinned; it was "
                "not used. If the new content is right, change `sha256`."
            )
        if revision == last.revision:
            return None
        writer = Writer(into, self.location)
        unpack(data, writer)
        _lift(into)
        declared = declared_in(into, "archive")
        return Fetched(
            revision=revision, validators=validators, notes=writer.notes, declared=declared
        )

    def _read(self, last: State) -> tuple[bytes | None, dict[str, str]]:
        """The archive, None if it is unchanged, and its validators."""
        if is_http(self._address):
            document = get(self._address, MAX_ARCHIVE_SIZE, last.validators, self.cancelled.is_set)
            return None if document.is_unchanged else document.content, document.validators
        validators = {"signature": repr(signature(self._address))}
        if last.validators == validators:
            return None, validators
        try:
            return read_bytes(self._address, MAX_ARCHIVE_SIZE), validators
        except OSError as error:
            raise SourceError(
                f"The archive {self.location} cannot be read: {error.strerror}."
            ) from error


def _lift(folder: Path) -> None:
    """If an archive has only one folder, move its content up, unless the folder is a skill."""
    inside = list(folder.iterdir())
    if len(inside) != 1 or not inside[0].is_dir():
        return
    if any((inside[0] / name).exists() for name in SKILL_FILES):
        return
    [only] = inside
    outer = only.rename(folder / ".outer")  # an entry in it may have the same name
    for path in outer.iterdir():
        if path.name != outer.name:
            path.rename(folder / path.name)
    shutil.rmtree(outer)
