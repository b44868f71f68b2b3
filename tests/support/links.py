"""Links that may not be followed, such as those of another user's process."""

import os
from pathlib import Path

import pytest


def close(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """Let every link to a target be one that may not be followed."""
    readlink, stat = os.readlink, Path.stat

    def read(path: str) -> str:
        if (found := readlink(path)) == target:
            raise PermissionError(13, "Permission denied", str(path))
        return found

    def checked(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if follow_symlinks and path.is_symlink():
            read(str(path))
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "readlink", read)
    monkeypatch.setattr(Path, "stat", checked)
