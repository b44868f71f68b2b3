"""The lock of a store on disk, for one process at a time, with a note that names the process."""

import contextlib
import os
import sys
from pathlib import Path

from filelock import FileLock, Timeout

from repertory.errors import StoreBusyError, StoreError
from repertory.system.files import PRIVATE, identity, make_private, private

OWN_S = 2.5  # how long to wait for a session of this process to close

_held: set[tuple[int, tuple[int, int] | None]] = set()  # held lock files, with the process id


class StoreLock:
    """The exclusive right to use one store, held from construction until ``release``.

    Other processes, and other attempts in this one, are refused. The lock ends with the process,
    even if that is killed. The note beside it tells people which process holds the lock. It is a
    separate file (``.holder``), because some systems cannot read a locked file. It stays if the
    process is killed.

    Attributes:
        was_left: Whether the last holder was killed.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        """Take the lock, waiting up to ``timeout`` seconds.

        If this process holds it, the wait is at most ``OWN_S``, because the waiting thread may be
        the one that has to release it.

        Raises:
            StoreBusyError: The lock is held; the message names the holder.
            StoreError: The directory cannot be written.
        """
        self._note = path.with_name(f"{path.name}.holder")
        # Not thread-local, because another thread may release it.
        self._lock = FileLock(path.with_name(f"{path.name}.lock"), mode=PRIVATE, thread_local=False)
        try:
            make_private(path.parent)
            self._lock.acquire(timeout=min(timeout, OWN_S) if self._is_own else timeout)
        except Timeout as exc:
            raise StoreBusyError(f"{path} is {self._taken()}.") from exc
        except OSError as exc:
            raise StoreError(
                f"{path.parent} cannot be written ({exc.strerror}): "
                "make it writable, or choose another data directory."
            ) from exc
        self.was_left = self._note.exists()
        try:
            with open(self._note, "w", encoding="utf-8", opener=private) as note:
                note.write(_this_process())
        except OSError as exc:
            self._lock.release()
            raise StoreError(
                f"{self._note} cannot be written ({exc.strerror}): "
                "make room, or choose another data directory."
            ) from exc
        self._file = self._file_of_process()
        _held.add(self._file)

    def release(self) -> None:
        """Release the lock; releasing twice is allowed."""
        if self._lock.is_locked:
            with contextlib.suppress(OSError):  # the disk may be read-only; only the lock matters
                self._note.unlink()
            _held.discard(self._file)
            self._lock.release()

    @property
    def _holder(self) -> str:
        """The text of the note; empty if missing."""
        with contextlib.suppress(OSError):  # the lock was just taken or released
            return self._note.read_text(encoding="utf-8", errors="replace")
        return ""

    @property
    def _is_own(self) -> bool:
        """Whether this process holds the lock. Process ids may repeat in other containers."""
        return self._file_of_process() in _held and self._holder == _this_process()

    def _file_of_process(self) -> tuple[int, tuple[int, int] | None]:
        return os.getpid(), identity(self._lock.lock_file)

    def _taken(self) -> str:
        if self._is_own:
            return "already open in this program: share that session, or close it first"
        return (
            f"in use by {self._holder or 'another process'}: wait until it has finished, or stop it"
        )


def _this_process() -> str:
    """Its id, program and subcommand. The rest of the command line may contain secrets."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]])[:100]
    return f"process {os.getpid()} ({command})"
