"""Unpacks only the regular files of an archive into a folder, within limits."""

import gzip
import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from repertory.errors import SourceError
from repertory.sources.archive.tar import CHUNK_SIZE, Tar
from repertory.sources.fetched.writing import MAX_TOTAL_SIZE, Writer

MAX_UNPACKED_SIZE = 2 * MAX_TOTAL_SIZE  # decompressed bytes, including those of skipped files
MAX_LIST_SIZE = 32 * 2**20  # bytes of the central directory of a zip archive

_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_END, _END_64, _END_LENGTH, _TAIL = b"PK\x05\x06", b"PK\x06\x07", 22, 1 << 17
_ENCRYPTED = 0x1
_OF_MACOS = "__MACOSX/"  # resource forks, which no other program reads
_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


def unpack(data: bytes, writer: Writer) -> None:
    """Write the files of an archive.

    Args:
        data: The archive.
        writer: Writes them, and limits their number and sizes.

    Raises:
        SourceError: It is not a readable archive, or exceeds a limit.
    """
    try:
        if data.startswith(_ZIP):
            _unzip(data, writer)
        elif data.startswith(_GZIP):
            _untar(data, writer)
        else:
            raise SourceError(f"{writer.location} is neither a .zip nor a .tar.gz archive.")
    except (zipfile.BadZipFile, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(f"{writer.location} is damaged: {error}.") from error
    # The libraries raise these for invalid headers, and we for exceeded limits.
    except (ValueError, OverflowError, NotImplementedError, RuntimeError, struct.error) as error:
        raise SourceError(f"{writer.location} cannot be unpacked: {error}.") from error


def _unzip(data: bytes, writer: Writer) -> None:
    _check_list(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            place = _place(info.filename)
            if place.endswith("/") or place.startswith(_OF_MACOS):
                continue
            if kind not in {0, stat.S_IFREG}:
                writer.leave_out("links" if kind == stat.S_IFLNK else "devices")
            elif info.flag_bits & _ENCRYPTED:
                writer.leave_out("encrypted files")
            elif info.compress_type not in _COMPRESSIONS:
                writer.leave_out("files in an unusual compression")
            elif writer.takes(place, info.file_size):
                with archive.open(info) as file:
                    is_executable = bool(info.external_attr >> 16 & 0o100)
                    writer.write(place, _chunks(file), is_executable=is_executable)


def _place(name: str) -> str:
    """The place of an entry of a zip archive. Some Windows programs write backslashes."""
    return (name if "/" in name else name.replace("\\", "/")).removeprefix("./")


def _check_list(data: bytes) -> None:
    """Reject a zip archive with a large central directory, which the library reads whole."""
    tail = data[-_TAIL:]
    at = tail.find(_END)
    while at >= 0:
        end = tail[at : at + _END_LENGTH]
        if len(end) == _END_LENGTH and struct.unpack("<L", end[12:16])[0] > MAX_LIST_SIZE:
            raise ValueError("it lists too many files")
        at = tail.find(_END, at + 1)
    if _END_64 in tail:
        raise ValueError("it lists too many files")


def _untar(data: bytes, writer: Writer) -> None:
    archive = Tar(_Bounded(gzip.GzipFile(fileobj=io.BytesIO(data))))
    for file in archive:
        place = file.place.removeprefix("./")
        if file.odd:
            writer.leave_out(file.odd)
        elif writer.takes(place, file.size):
            writer.write(place, archive.content(), is_executable=file.is_executable)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(CHUNK_SIZE), b"")


class _Bounded:
    """A stream that raises after ``MAX_UNPACKED_SIZE`` bytes."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream
        self._left = MAX_UNPACKED_SIZE

    def read(self, size: int) -> bytes:
        """Read some bytes."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"it would have more than {MAX_UNPACKED_SIZE:,} bytes")
        return data
