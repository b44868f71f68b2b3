"""Objects shared by all projects of a process, such as the store and one engine per model.

Two commands of a project with the same sources and model use the same collection, so they must also
share the announcements of its changes.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import msgspec

from repertory.coordination.ports import Coordination, in_process

if TYPE_CHECKING:
    from repertory.index.edge import EdgeStore

T = TypeVar("T")


class SharedObjects:
    """Objects that the projects of one process share. Thread-safe.

    An object is kept only while a project uses it, so an engine ends with its last project.
    """

    def __init__(self) -> None:
        self._kept: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._locks: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()

    def one(self, key: Hashable, make: Callable[[], T]) -> T:
        """The object of a key, created on first use; other callers with the same key wait."""
        with self._lock:
            lock = self._locks[key]
        with lock:
            found: T | None = self._kept.get(key)
            if found is None:
                found = self._kept[key] = make()
            return found

    def store(self, folder: Path, timeout: float) -> "EdgeStore":
        """The embedded store of a folder; see ``EdgeStore``."""
        from repertory.index.edge import EdgeStore  # noqa: PLC0415 - a team does not use it

        return self.one(("store", folder), lambda: EdgeStore(folder, timeout))

    def coordination(self, folder: Path, status_file: Path) -> Coordination:
        """The ports of a project; those that concern collections are shared between projects."""
        own = in_process(folder, status_file)
        return msgspec.structs.replace(
            own,
            deltas=self.one(("deltas", folder), lambda: own.deltas),
            tombstones=self.one(("tombstones", folder), lambda: own.tombstones),
            claims=self.one(("claims", folder), lambda: own.claims),
        )
