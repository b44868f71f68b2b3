"""Stores keyword snapshots in a separate process, so that no save waits for one."""

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from repertory.compose import Parts
from repertory.coordination.ports import Coordination
from repertory.errors import StoreError
from repertory.indexing import maintenance
from repertory.settings import Settings
from repertory.system import logs, python_process

_log = logging.getLogger(__name__)


class Snapshots:
    """Stores requested snapshots, one after another.

    Requests are lost with the worker. The coordinator repeats them, and a snapshot only saves time.

    Attributes:
        busy: The current task for the worker's report; empty if idle.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._wanted: dict[str, None] = {}  # the collections, in order
        self._changed = threading.Condition()
        self.busy: dict[str, object] = {}

    def request(self, collection: str) -> None:
        """Request a snapshot of a collection, unless a request for it is already waiting."""
        with self._changed:
            self._wanted[collection] = None
            self._changed.notify_all()

    def run(self) -> None:
        """Do requests in an endless loop."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted)
                collection = next(iter(self._wanted))
                del self._wanted[collection]
            self.busy = {"task": "keep keywords", "collection": collection, "since": time.time()}
            try:
                self._store(collection)
            except Exception:  # keep the thread alive, as the next request may succeed
                _log.exception("snapshot_failed", extra={"collection": collection})
            finally:
                self.busy = {}

    def _store(self, collection: str) -> None:
        # Not ``multiprocessing``, because Celery's processes may not have such children.
        command = python_process.command(__name__, collection)
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:  # noqa: S603 - our own, without a shell
            assert process.stdin
            extra = {"collection": collection, "pid": process.pid}
            _log.info("snapshot_started", extra=extra)
            with suppress(BrokenPipeError):  # it has ended already
                process.stdin.write(pickle.dumps(self._settings))
                process.stdin.flush()
            code = process.wait()
        level = logging.WARNING if code else logging.INFO
        _log.log(level, "snapshot_ended", extra={**extra, "code": code})


def main(collection: str) -> None:
    """Store a snapshot of a collection in this process, with the settings read from stdin."""
    logs.begin()
    python_process.yield_to_others()
    settings: Settings = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our worker alone
    parts = Parts(settings, Path.cwd())
    coordination = parts.coordination
    ending = threading.Thread(target=_end_with_worker, args=(collection, coordination), daemon=True)
    ending.start()
    with suppress(KeyboardInterrupt):
        try:
            maintenance.keep_keywords(collection, store=parts.store, coordination=coordination)
        except StoreError as error:  # the coordinator repeats the request
            extra = {"collection": collection, "error": str(error)}
            _log.warning("snapshot_failed", extra=extra)


def _end_with_worker(collection: str, coordination: Coordination) -> None:
    """End this process when the worker ends, even by kill -9, which closes its end of stdin."""
    # Not ``sys.stdin.read``, which would hold a lock that the end of this process needs.
    os.read(sys.stdin.fileno(), 1)
    maintenance.interrupt(collection, coordination)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(sys.argv[1])
