"""Write items in the background: a thread writes them from a bounded queue."""

import atexit
import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

IDLE_S = 5.0  # after which an idle thread ends
FLUSH_TIMEOUT_S = 5.0  # at the end of the process

_log = logging.getLogger(__name__)

T = TypeVar("T")


class BackgroundWriter(Generic[T]):
    """Passes items to a function in order, on its own thread. Thread-safe.

    Args:
        name: The name of the thread, and the prefix of the warnings.
        file: The file that is written, for the warnings.
        write: Writes items. It also gets the number of items lost before them, to record it with
            the first item. Returns how many it has written, and why the others were not.
        limit: The maximum number of pending items; further ones are lost.
        pause: Items added within this many seconds are written together.

    Attributes:
        trouble: Why the last write failed; empty if it succeeded.
    """

    def __init__(
        self,
        name: str,
        file: Path,
        write: Callable[[list[T], int], tuple[int, str]],
        limit: int,
        pause: float,
    ) -> None:
        self.trouble = ""
        self._name = name
        self._file = file
        self._write = write
        self._limit = limit
        self._pause = pause
        self._waiting: deque[T] = deque()
        self._lost = 0  # lost items not yet recorded by a write
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_writing = False
        self._awaited = 0  # number of callers waiting in ``flush``

    def add(self, thing: T) -> None:
        """Write an item soon. Never raises, and does not wait for the disk."""
        with self._changed:
            if self._thread is None:
                self._start()
            if len(self._waiting) >= self._limit:
                self._lost += 1
                return
            self._waiting.append(thing)
            if len(self._waiting) == 1 or self._is_due():  # otherwise the thread is already awake
                self._changed.notify_all()

    def _start(self) -> None:
        """Start the thread. If the system cannot, the next item tries again."""
        # A daemon, because a disk that hangs must not keep the process alive.
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._note(str(error))
            return
        self._thread = thread
        atexit.register(self.flush)

    def flush(self, seconds: float = FLUSH_TIMEOUT_S) -> bool:
        """Wait until all items are written; return whether they were."""
        with self._changed:
            self._awaited += 1
            if self._waiting and self._thread is None:
                self._start()
            self._changed.notify_all()
            is_idle = self._changed.wait_for(
                lambda: not (self._waiting or self._is_writing), seconds
            )
            self._awaited -= 1
            return is_idle and not self.trouble

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                if not self._changed.wait_for(lambda: self._waiting, IDLE_S):
                    self._thread = None
                    atexit.unregister(self.flush)
                    return
                self._changed.wait_for(self._is_due, self._pause)
                things, self._is_writing = list(self._waiting), True
                self._waiting.clear()
                lost, self._lost = self._lost, 0
            written, trouble = self._tried(things, lost)
            with self._changed:
                self._lost += len(things) - written + (0 if written else lost)
                self._note(trouble)

    def _note(self, trouble: str) -> None:
        """Store why a write failed, or empty if it succeeded; warn at the first failure."""
        if trouble and not self.trouble:
            extra = {"file": str(self._file), "reason": trouble}
            _log.warning(f"{self._name}_not_written", extra=extra)
        self.trouble = trouble

    def _is_due(self) -> bool:
        """Whether to write before the pause is over."""
        return bool(self._awaited) or 2 * len(self._waiting) > self._limit

    def _tried(self, things: list[T], lost: int) -> tuple[int, str]:
        try:
            return self._write(things, lost)
        # An error in ``write`` must end neither the thread nor a request.
        except Exception as error:
            _log.exception(f"{self._name}_not_recorded")
            return 0, f"{type(error).__name__}: {error}"
