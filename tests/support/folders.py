"""Folders for tests that write much."""

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
    """A temporary folder in memory where there is room, for what need not survive a power cut."""
    is_usable = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    return TemporaryDirectory(prefix="repertory-", dir=_MEMORY if is_usable else None)


def any_spelling(root: Path, monkeypatch: pytest.MonkeyPatch, *, any_case: bool = True) -> None:
    """Have a folder take upper and lower case for the same, and two forms of a letter, too.

    So does the file system of macOS. Only what reads files does so here, and by absolute paths.

    Args:
        root: The folder.
        monkeypatch: The fixture.
        any_case: Whether upper and lower case are the same. On a case-sensitive disk they are not.
    """

    def folded(name: str) -> str:
        composed = unicodedata.normalize("NFC", name)
        return composed.casefold() if any_case else composed

    listdir, readlink = os.listdir, os.readlink

    def listed(path: Any, folder: int | None) -> Any:  # noqa: ANN401 - whatever ``os`` takes
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
