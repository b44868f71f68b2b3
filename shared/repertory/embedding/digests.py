"""Digests of large files, cached until the file changes."""

import contextlib
import hashlib
import os
from pathlib import Path

from repertory.system.files import write_atomically


def state_name(file: Path) -> str:
    """A name for the current state of a file: ``pathdigest-size-mtime-ctime``.

    The ctime is included because an archive or a program can set the mtime, but not the ctime.

    Raises:
        OSError: The file is missing.
    """
    state = file.stat()
    path = hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:16]
    return f"{path}-{state.st_size:x}-{state.st_mtime_ns:x}-{state.st_ctime_ns:x}"


def sha256(file: Path, cache: Path) -> str:
    """The SHA-256 of a file in hex, cached in the folder ``cache`` until its size or times change.

    Raises:
        OSError: The file cannot be read. A cache that cannot be written is ignored.
    """
    note = cache / state_name(file)
    with contextlib.suppress(OSError):
        if len(digest := note.read_text("ascii", "replace")) == 64:
            return digest
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    with contextlib.suppress(OSError):
        write_atomically(note, digest.encode())
    return digest
