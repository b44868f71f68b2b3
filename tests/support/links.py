"""Symbolic links that may not be followed, such as links of another user's process."""

import os
from pathlib import Path

import pytest


def close(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """Raise PermissionError whenever a symbolic link to ``target`` is read or followed."""
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
