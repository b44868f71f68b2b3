"""The backup file: a ZIP archive of parts, and a manifest with the digest of each part.

An archive is not trusted before ``Archive.verify``, and its names are checked before they are used
as paths.
"""

import hashlib
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec

from repertory.backup.work_folder import work_folder
from repertory.errors import StoreCorruptError, StoreError, UsageError
from repertory.system.files import flush_to_disk, private
from repertory.system.progress import Progress

FORMAT = 1
MANIFEST = "manifest.json"
MAX_MANIFEST = 32 * 2**20  # bytes
MAX_LIST = 32 * 2**20  # bytes of the ZIP central directory
CHUNK = 1 << 20  # bytes

_END, _END_LENGTH, _TAIL = b"PK\x05\x06", 22, 1 << 17
_LOCATOR_64, _LENGTH_64, _BEFORE_64 = b"PK\x06\x07", 56, 56 + 20  # ZIP64, for archives over 4 GB
_ENCRYPTED = 0x1
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an archive.

    Attributes:
        size: In bytes.
        digest: The SHA-256 of its bytes, in hex.
    """

    size: int
    digest: str


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A collection or a vector cache in an archive.

    Attributes:
        part: The name of the part with its points or vectors.
        count: The number of its points or vectors.
        dimension: The dimension of its vectors.
    """

    part: str
    count: int
    dimension: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of an archive.

    Attributes:
        format: The version of the archive format.
        version: The release that created the archive.
        made: The creation time, in seconds since the epoch.
        is_team: Whether it is a backup of a team's server.
        namespace: The namespace of the collections.
        collections: The collections by name.
        caches: The vector caches of a team, by the slug of the model.
        aliases: The collection of each alias.
        parts: All parts by name. The name of a file is its path in the data directory.
    """

    format: int
    version: str
    made: float
    is_team: bool
    namespace: str
    collections: dict[str, Stored]
    caches: dict[str, Stored]
    aliases: dict[str, str]
    parts: dict[str, Part]

    @property
    def stored(self) -> list[Stored]:
        """All collections and vector caches."""
        return [*self.collections.values(), *self.caches.values()]

    @property
    def files(self) -> list[str]:
        """The names of the parts that are files of the data directory."""
        others = {one.part for one in self.stored}
        return [name for name in self.parts if name not in others]

    @property
    def size(self) -> int:
        """The total size of all parts in bytes."""
        return sum(part.size for part in self.parts.values())


class Writer:
    """Writes parts into a new archive.

    Attributes:
        parts: The parts written so far, by name.
        place: A private folder for temporary copies.
    """

    def __init__(self, file: IO[bytes], place: Path) -> None:
        self.place = place
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self.parts: dict[str, Part] = {}

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        """Add a part."""
        digest, size = hashlib.sha256(), 0
        with self._zip.open(name, "w", force_zip64=True) as part:
            for chunk in chunks:
                part.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        self.parts[name] = Part(size=size, digest=digest.hexdigest())

    def finish(self, manifest: Manifest) -> None:
        """Add the manifest and complete the archive."""
        text = msgspec.json.format(msgspec.json.encode(manifest))
        with self._zip.open(MANIFEST, "w") as part:  # no timestamp, since ZIP has none before 1980
            part.write(text)
        self._zip.close()

    def close(self) -> None:
        """Close the ZIP archive, even if it is incomplete; its file must still be open."""
        with suppress(Exception):  # such as a full disk; the first error is the one to report
            self._zip.close()


@contextmanager
def writing(path: Path) -> Iterator[Writer]:
    """Write an archive that only its owner can read. It gets its name when it is complete.

    Raises:
        StoreError: The archive cannot be written.
    """
    try:
        with work_folder(path.parent) as place:
            half = place / "archive"
            with open(half, "xb", opener=private) as file, closing(Writer(file, place)) as writer:
                yield writer
                flush_to_disk(file)
            half.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}.") from error


class Archive:
    """An archive to restore. A context manager.

    Attributes:
        manifest: The contents that the archive declares.
    """

    def __init__(self, path: Path) -> None:
        """Open an archive and read its manifest.

        Raises:
            UsageError: The file is missing, is not a backup, or is from a newer release.
            StoreCorruptError: The archive is damaged.
        """
        self.path = path
        if not os.path.isfile(path):  # noqa: PTH113 - False also if it cannot be reached
            raise UsageError(f"{path} is not a file; give a backup.")
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
        try:
            with self._translated():
                self._check_list()
                self._zip = zipfile.ZipFile(self._file)
                self.manifest = self._manifest()
                self._check_parts()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def verify(self, step: Progress) -> None:
        """Read all parts and compare their digests with the manifest.

        Raises:
            StoreCorruptError: The archive is damaged.
        """
        done, total = 0, self.manifest.size
        for name, part in self.manifest.parts.items():
            digest = hashlib.sha256()
            with self.part(name) as read:
                while chunk := read(CHUNK):
                    digest.update(chunk)
                    done += len(chunk)
                    step("Verifying", done, total)
            if digest.hexdigest() != part.digest:
                raise self._damaged(f"the content of {name} differs from its manifest")

    @contextmanager
    def part(self, name: str) -> Iterator[Callable[[int], bytes]]:
        """Yield a function that reads the next bytes of a part.

        Raises:
            StoreCorruptError: The archive is damaged.
        """
        with self._translated(), self._zip.open(name) as part:
            yield part.read

    def _manifest(self) -> Manifest:
        try:
            info = self._zip.getinfo(MANIFEST)
        except KeyError as error:
            raise self._foreign() from error
        if info.file_size > MAX_MANIFEST or not _is_plain(info):
            raise self._foreign()
        data = self._zip.read(info)
        try:
            head = msgspec.json.decode(data)
            number = head.get("format") if isinstance(head, dict) else None
            if isinstance(number, int) and number > FORMAT:
                raise UsageError(f"{self.path} is of a newer release; restore it with that one.")
            return msgspec.json.decode(data, type=Manifest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._foreign() from error

    def _check_parts(self) -> None:
        """Check that the parts of the archive have the names and sizes in the manifest."""
        found = {info.filename: info for info in self._zip.infolist()}
        parts = self.manifest.parts
        if len(found) != len(self._zip.infolist()) or {*found} != {*parts, MANIFEST}:
            raise self._damaged("its parts differ from its manifest")
        for name, part in parts.items():
            if not _is_plain(found[name]) or found[name].file_size != part.size:
                raise self._damaged(f"the size of {name} differs from its manifest")
        if not {one.part for one in self.manifest.stored} <= {*parts}:
            raise self._damaged("a part is missing")

    def _check_list(self) -> None:
        """Refuse a large central directory, because ``zipfile`` reads all of it into memory."""
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, size - _TAIL))
        tail = self._file.read()
        at = tail.rfind(_END)
        end = tail[at : at + _END_LENGTH]
        if at < 0 or len(end) < _END_LENGTH:
            raise self._foreign()
        before = tail[max(0, at - _BEFORE_64) : at]
        is_64 = len(before) == _BEFORE_64 and before[_LENGTH_64:].startswith(_LOCATOR_64)
        listed = struct.unpack("<Q", before[40:48]) if is_64 else struct.unpack("<L", end[12:16])
        if listed[0] > MAX_LIST:
            raise self._foreign()
        self._file.seek(0)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (zipfile.BadZipFile, EOFError, zlib.error, struct.error) as error:
            raise self._damaged(str(error)) from error
        # ``zipfile`` also raises these for invalid headers.
        except (ValueError, OverflowError, NotImplementedError, RuntimeError) as error:
            raise self._damaged(str(error)) from error
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror or error}.") from error

    def _damaged(self, why: str) -> StoreCorruptError:
        return StoreCorruptError(f"{self.path} is damaged: {why}; nothing was restored.")

    def _foreign(self) -> UsageError:
        return UsageError(f"{self.path} is not a backup of Repertory.")


def require_room(folder: Path, size: int) -> None:
    """Check that the disk of a folder has ``size`` bytes free.

    Raises:
        StoreError: It has less.
    """
    if shutil.disk_usage(folder).free < size:
        raise StoreError(
            f"The disk of {folder} has less than {size / 1e6:,.1f} MB free; make room."
        )


def _is_plain(info: zipfile.ZipInfo) -> bool:
    is_known = info.compress_type in _COMPRESSIONS and not info.flag_bits & _ENCRYPTED
    return is_known and not info.is_dir()
