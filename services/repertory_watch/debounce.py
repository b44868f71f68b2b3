"""When to read a source again after a change: as soon as its files have stopped changing."""

from collections.abc import Callable, Hashable

# After this many quiet periods, a source is read even if one of its files never stops changing. So
# a continuously written log is read every three seconds, and delays no save for longer.
MAX_QUIET_PERIODS = 10


class Debounce:
    """Collects the changes of sources until they are due. Apart from ``signature``, it does no I/O.

    A source becomes due once, however many of its files changed. Each ``now`` is the time in
    seconds on a monotonic clock.

    Args:
        quiet: Seconds without a change after which a file counts as written.
        signature: Returns a value for a path that changes with the file. It reveals changes that no
            event reports.
    """

    def __init__(self, quiet: float, signature: Callable[[str], Hashable]) -> None:
        self._quiet = quiet
        self._signature = signature
        self._pending: dict[str, _Changes] = {}

    def add(self, source: str, path: str, now: float) -> None:
        """Record that a file of a source was changed, created or deleted."""
        changes = self._pending.setdefault(source, _Changes(now))
        changes.files[path] = self._signature(path)
        changes.last = now

    def due(self, now: float) -> dict[str, list[str]]:
        """Return the sources that are due with their changed paths, and forget these changes."""
        due = [name for name, changes in self._pending.items() if self._is_due(changes, now)]
        return {name: [*self._pending.pop(name).files] for name in due}

    def forget(self, source: str) -> None:
        """Forget the changes of a source, if there are any."""
        self._pending.pop(source, None)

    @property
    def is_pending(self) -> bool:
        """Whether any source will become due."""
        return bool(self._pending)

    def _is_due(self, changes: "_Changes", now: float) -> bool:
        if now - changes.first >= MAX_QUIET_PERIODS * self._quiet:
            return True
        if now - changes.last < self._quiet:
            return False
        signatures = {path: self._signature(path) for path in changes.files}
        if signatures == changes.files:
            return True
        changes.files, changes.last = signatures, now
        return False


class _Changes:
    """The changes of one source: the times of the first and the last, and the files' signatures."""

    def __init__(self, now: float) -> None:
        self.first = self.last = now
        self.files: dict[str, Hashable] = {}
