"""When to look at a source after something was noticed of it: as soon as its files are quiet."""

from collections.abc import Callable, Hashable

# After so many quiet periods a source is looked at although some file never rests. A log that is
# written without end costs a look every three seconds then, and holds up nobody's save for longer.
MOST_QUIETS = 10


class Debounce:
    """What was noticed of sources, until they are due. Pure but for the signatures.

    However many of its files change, a source is due once.

    Args:
        quiet: Seconds without a change after which a file counts as written.
        signature: What of a file, by its path, changes when the file does; it shows what goes on
            without being told.
    """

    def __init__(self, quiet: float, signature: Callable[[str], Hashable]) -> None:
        self._quiet = quiet
        self._signature = signature
        self._sources: dict[str, _Noticed] = {}

    def noticed(self, source: str, path: str, now: float) -> None:
        """Note that a file of a source changed, came or went.

        Args:
            source: The source's name.
            path: The file's path.
            now: The time, in seconds, on a clock that never jumps.
        """
        noticed = self._sources.setdefault(source, _Noticed(now))
        noticed.files[path] = self._signature(path)
        noticed.last = now

    def due(self, now: float) -> list[str]:
        """The sources to look at now; what was noticed of them is forgotten."""
        due = [name for name, noticed in self._sources.items() if self._is_due(noticed, now)]
        for name in due:
            del self._sources[name]
        return due

    def forget(self, source: str) -> None:
        """Forget what was noticed of a source, if anything was."""
        self._sources.pop(source, None)

    @property
    def is_waiting(self) -> bool:
        """Whether some source will be due."""
        return bool(self._sources)

    def _is_due(self, noticed: "_Noticed", now: float) -> bool:
        if now - noticed.first >= MOST_QUIETS * self._quiet:
            return True
        if now - noticed.last < self._quiet:
            return False
        signatures = {path: self._signature(path) for path in noticed.files}
        if signatures == noticed.files:
            return True
        noticed.files, noticed.last = signatures, now
        return False


class _Noticed:
    """What was noticed of one source: since when, until when, and its files' signatures."""

    def __init__(self, now: float) -> None:
        self.first = self.last = now
        self.files: dict[str, Hashable] = {}
