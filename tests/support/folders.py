"""Temporary folders in memory, and a folder that behaves like a macOS file system."""

import os
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

_MEMORY = Path("/dev/shm")
_ROOM = 1 << 30  # bytes


def quick_folder() -> TemporaryDirectory[str]:
    """A temporary folder, in memory if there is enough free space."""
    is_usable = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    return TemporaryDirectory(prefix="repertory-", dir=_MEMORY if is_usable else None)


def any_spelling(root: Path, monkeypatch: pytest.MonkeyPatch, *, any_case: bool = True) -> None:
    """Make names in a folder insensitive to case and Unicode normalization, as on macOS.

    This affects only calls that read files, and only absolute paths or paths relative to an open
    folder.

    Args:
        root: The folder.
        monkeypatch: The fixture.
        any_case: Whether case is ignored; False imitates a case-sensitive disk of macOS.
    """

    def folded(name: str) -> str:
        composed = unicodedata.normalize("NFC", name)
        return composed.casefold() if any_case else composed

    listdir, readlink = os.listdir, os.readlink

    def listed(path: Any, folder: int | None) -> Any:  # noqa: ANN401 - any path that ``os`` accepts
        if isinstance(path, int):
            return path
        above = readlink(f"/proc/self/fd/{folder}") if folder is not None else ""
        real, asked = root, Path(above, os.fsdecode(path))
        for name in asked.relative_to(root).parts if asked.is_relative_to(root) else ():
            try:
                alike = {folded(one): one for one in listdir(real)}
            except OSError:
                alike = {}
            real /= alike.get(folded(name), name)
        return str(asked if real == root else real)

    def standing_in(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda path=".", *rest, dir_fd=None, **more: call(
            listed(path, dir_fd), *rest, **more
        )

    for name in ("listdir", "lstat", "open", "readlink", "scandir", "stat"):
        monkeypatch.setattr(os, name, standing_in(getattr(os, name)))
