"""The default values for parameters that a search request to a server leaves out."""

import contextlib
import time
from pathlib import Path

from msgspec.structs import replace

from repertory.errors import ConfigurationError
from repertory.project.workspace import Workspace
from repertory.settings import Settings, files
from repertory.system.files import signature
from repertory.values import MAX_LIMIT, SETTINGS, Values

CHECK_INTERVAL_S = 1.0


class Defaults:
    """Returns the values when called, and follows changes of the configuration files. Thread-safe.

    While a file is invalid, the last valid values are used. The limit is capped at ``MAX_LIMIT``.

    Args:
        settings: The active settings.
        directory: The directory of the settings.
    """

    def __init__(self, settings: Settings, directory: Path) -> None:
        self._workspace = Workspace(settings, directory)
        self._paths = files(settings.flags, directory, settings.environment)
        self._values = _capped(settings.values)
        self._seen = self._signatures()
        self._checked_at = time.monotonic()

    def __call__(self) -> Values:
        """The values in the files, at most ``CHECK_INTERVAL_S`` old."""
        now = time.monotonic()
        if now - self._checked_at >= CHECK_INTERVAL_S:
            self._checked_at = now
            if (seen := self._signatures()) != self._seen:
                self._seen = seen
                with contextlib.suppress(ConfigurationError):  # the watch reports it
                    self._values = _capped(self._workspace.reloaded().settings.values)
        return self._values

    def _signatures(self) -> list[object]:
        return [signature(str(path)) for path in self._paths]


def for_server(settings: Settings) -> Values:
    """The values for searches on a server. The limit is capped unless it was given explicitly."""
    is_asked = settings.origins.get("limit") == SETTINGS["limit"].flag
    return settings.values if is_asked else _capped(settings.values)


def _capped(values: Values) -> Values:
    return replace(values, limit=min(values.limit, MAX_LIMIT))
