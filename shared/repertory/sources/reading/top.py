"""The places of files relative to a folder."""

import os
from pathlib import Path

from repertory.bounded import real_path


class Top:
    """A folder whose files may be given with its links resolved or not.

    Attributes:
        real: Its absolute path, links resolved.
    """

    def __init__(self, folder: Path) -> None:
        self.real = real_path(folder)
        names = (self.real, os.path.abspath(folder))  # noqa: PTH100 - links stay
        self._prefixes = tuple(os.path.join(name, "") for name in names)  # noqa: PTH118 - a slash

    def place(self, path: str) -> str | None:
        """Return an absolute path relative to the folder, with ``/``; None if it is outside."""
        for prefix in self._prefixes:
            if path.startswith(prefix):
                return path.removeprefix(prefix).replace(os.sep, "/")
        return None
