"""A folder, and where in it files are."""

import os
from pathlib import Path


class Top:
    """A folder whose files may be named by its path as it was given, or with links resolved.

    Args:
        folder: The folder.

    Attributes:
        real: Its absolute path, links resolved.
    """

    def __init__(self, folder: Path) -> None:
        self.real = os.path.realpath(folder)
        names = (self.real, os.path.abspath(folder))  # noqa: PTH100 - links stay
        self._beginnings = tuple(os.path.join(name, "") for name in names)  # noqa: PTH118 - a slash

    def place(self, path: str) -> str | None:
        """An absolute path as one relative to the folder, with ``/``; None outside of it."""
        for beginning in self._beginnings:
            if path.startswith(beginning):
                return path.removeprefix(beginning).replace(os.sep, "/")
        return None
