"""Digests of large files, taken once for each state of a file."""

import contextlib
import hashlib
import os
import threading
from pathlib import Path


def identity(file: Path) -> str:
    """A name for a file in its present state: ``path-size-time``, the path as a digest.

    Raises:
        OSError: There is no such file.
    """
    state = file.stat()
    path = hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:16]
    return f"{path}-{state.st_size:x}-{state.st_mtime_ns:x}"


def partial_name(file: Path) -> Path:
    """Where to write a file before it is put in place; no one else writes there."""
    return file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}.partial")


def sha256(file: Path, memory: Path) -> str:
    """The SHA-256 of a file in hex, remembered in a folder while size and time are the same.

    Raises:
        OSError: The file cannot be read. That nothing can be remembered is no error.
    """
    note = memory / identity(file)
    with contextlib.suppress(OSError):
        if len(digest := note.read_text("ascii", "replace")) == 64:
            return digest
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    with contextlib.suppress(OSError):
        write_whole(note, digest.encode())
    return digest


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_name(file)
    partial.write_bytes(content)
    partial.replace(file)
