"""The audit log: who did what, as JSON lines in rotated files that only their owner can read.

A line never holds secrets. It holds the texts of queries and the arguments of calls only if that is
switched on. Several processes may write to one file. A full or read-only disk does not make
requests fail. One warning is logged, and the next line that is written counts the lost ones.
"""

import functools
import getpass
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from repertory.data_directory import AUDIT
from repertory.settings import Settings
from repertory.system.background_writer import BackgroundWriter
from repertory.system.files import PRIVATE, make_private
from repertory.system.paths import expanded
from repertory.text import cut, one_line

FILE = "audit.jsonl"
MAX_WHAT = 100  # ids per line
MAX_LENGTH = 300  # characters per id
MAX_TEXT_LENGTH = 4_000  # characters of a query or of arguments
MAX_WAITING = 10_000  # pending lines
GATHER_S = 0.05  # lines within this time are written together, because opening the file is slow
LOCK_TIMEOUT_S = 5.0  # for another process that writes
MEGABYTE = 10**6


class AuditFile:
    """The current file of the log and the older ones. Thread-safe; lines are written in order.

    Args:
        folder: The folder of the files; it may be missing.
        max_size: The maximum size of each file in bytes.
        files: The maximum number of files, including the current one.

    Attributes:
        path: The current file.
        add: Writes a line soon; see ``BackgroundWriter``.
        flush: Waits until all lines are written.
    """

    def __init__(self, folder: Path, max_size: int, files: int) -> None:
        self.path = folder / FILE
        self._max_size = max_size
        self._files = files
        self._lock = FileLock(folder / f"{FILE}.lock", LOCK_TIMEOUT_S, PRIVATE)
        self._writer = BackgroundWriter("audit", self.path, self._write, MAX_WAITING, GATHER_S)
        self.add = self._writer.add
        self.flush = self._writer.flush

    @property
    def trouble(self) -> str:
        """Why the last write failed; empty if it succeeded."""
        return self._writer.trouble

    def check(self) -> str:
        """Why the file is not writable now; empty if it is."""
        return self._write([], 0)[1]

    def _write(self, lines: list[dict[str, Any]], lost: int) -> tuple[int, str]:
        """Write lines; return how many were written, and why the others were not."""
        written = 0
        try:
            make_private(self.path.parent)
            with self._lock:
                file = self._open()
                try:
                    size = os.fstat(file).st_size
                    for fields in lines:
                        counts = lost and not written
                        line = _encoded({**fields, "lost": lost} if counts else fields)
                        if size and size + len(line) > self._max_size:
                            self._rotate()
                            old, file, size = file, self._open(), 0
                            os.close(old)
                        _append(file, size, line)
                        size += len(line)
                        written += 1
                finally:
                    os.close(file)
        except Timeout:
            return written, "another process holds its lock"
        except OSError as error:
            return written, error.strerror or type(error).__name__
        return written, ""

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        return os.open(self.path, flags, PRIVATE)

    def _rotate(self) -> None:
        """Rename the files, and remove the oldest one, so that a new current file can be made."""
        names = [self.path, *(Path(f"{self.path}.{number}") for number in range(1, self._files))]
        names[-1].unlink(missing_ok=True)
        for newer, older in reversed(list(pairwise(names))):
            with suppress(FileNotFoundError):
                newer.replace(older)


class Audit:
    """Records what happens in one project.

    Args:
        settings: The active settings.
        directory: The project.
    """

    def __init__(self, settings: Settings, directory: Path) -> None:
        values = settings.values
        self._project = one_line(str(directory))
        self._is_on = not values.audit_off
        self.has_texts = self._is_on and values.audit_texts
        self.file = _file(audit_folder(settings), values.audit_file_size, values.audit_files)

    def record(
        self,
        action: str,
        caller: str,
        face: str,
        *,
        outcome: str,
        what: Iterable[str] = (),
        status: int = 0,
        seconds: float = 0.0,
        text: str = "",
    ) -> None:
        """Record one action. Never raises.

        Args:
            action: What was done, such as ``read``; see the table in docs/audit.md.
            caller: Who did it.
            face: ``http``, ``page``, ``mcp`` or ``cli``.
            outcome: ``ok``, ``refused`` or ``failed``.
            what: The ids of items, or the names of keys, servers and files.
            status: The HTTP status; 0 if there was none.
            seconds: How long it took.
            text: A query or arguments; left out unless texts are switched on.
        """
        if not self._is_on:
            return
        names = [cut(one_line(name), MAX_LENGTH) for name in what]
        fields = {
            "at": _now(),
            "action": action,
            "caller": cut(one_line(caller), MAX_LENGTH),
            "face": face,
            "what": names[:MAX_WHAT],
            "more": max(0, len(names) - MAX_WHAT),
            "outcome": outcome,
            "status": status,
            "ms": round(seconds * 1_000, 1),
            "project": self._project,
            "pid": os.getpid(),
            "text": cut(text, MAX_TEXT_LENGTH) if self.has_texts else "",
        }
        self.file.add({name: one for name, one in fields.items() if one not in ("", 0, [])})


def user() -> str:
    """The user who runs this process; ``user`` if the account has no name."""
    try:
        return f"user:{getpass.getuser()}"
    except (KeyError, OSError):
        return "user"


def audit_folder(settings: Settings) -> Path:
    """The folder of the log."""
    given = settings.values.audit_folder
    return expanded(given).absolute() if given else settings.data_dir.absolute() / AUDIT


def outcome_of(status: int) -> str:
    """The outcome of a request with an HTTP status."""
    if status >= 500 or not status:
        return "failed"
    return "refused" if status >= 400 else "ok"


@functools.cache
def _file(folder: Path, megabytes: int, files: int) -> AuditFile:
    """The audit file of a folder, shared by all projects of this process."""
    return AuditFile(folder, megabytes * MEGABYTE, files)


def _now() -> str:
    """The current time in UTC, in the format of RFC 3339."""
    now = datetime.fromtimestamp(time.time(), UTC)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _encoded(fields: dict[str, Any]) -> bytes:
    """Encode a line in printable ASCII, without line breaks or control characters inside."""
    return json.dumps(fields).encode() + b"\n"


def _append(file: int, size: int, line: bytes) -> None:
    """Append a whole line or nothing, because a partial line would corrupt the next one."""
    try:
        done = 0
        while done < len(line):
            done += os.write(file, line[done:])
    except OSError:
        with suppress(OSError):
            os.ftruncate(file, size)
        raise
