"""The settings for the parameters that a search of a server leaves out."""

import contextlib
import time
from pathlib import Path

from msgspec.structs import replace

from repertory.errors import ConfigurationError
from repertory.files import signature
from repertory.settings import Settings, files
from repertory.values import MAX_LIMIT, SETTINGS, Values
from repertory.workspace import Workspace

CHECK_INTERVAL_S = 1.0


class Defaults:
    """Called for the values, which follow the configuration files. Thread-safe.

    While a file is wrong, the last values hold. A limit is cut to the most that a server gives.

    Args:
        settings: The active settings.
        directory: The directory that they are of.
    """

    def __init__(self, settings: Settings, directory: Path) -> None:
        self._workspace = Workspace(settings, directory)
        self._paths = files(settings.flags, directory, settings.environment)
        self._values = _cut(settings.values)
        self._seen = self._signatures()
        self._checked_at = time.monotonic()

    def __call__(self) -> Values:
        """The values as the files have them, at most a second ago."""
        now = time.monotonic()
        if now - self._checked_at >= CHECK_INTERVAL_S:
            self._checked_at = now
            if (seen := self._signatures()) != self._seen:
                self._seen = seen
                with contextlib.suppress(ConfigurationError):  # the watch reports it
                    self._values = _cut(self._workspace.again().settings.values)
        return self._values

    def _signatures(self) -> list[object]:
        return [signature(str(path)) for path in self._paths]


def for_server(settings: Settings) -> Values:
    """The values for one search of a server, which refuses only a limit that was asked for."""
    is_asked = settings.origins.get("limit") == SETTINGS["limit"].flag
    return settings.values if is_asked else _cut(settings.values)


def _cut(values: Values) -> Values:
    return replace(values, limit=min(values.limit, MAX_LIMIT))
