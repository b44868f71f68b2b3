"""The scan of a project's folder for text files."""

from pathlib import Path

import pytest

from repertory.project_search import folder as module
from repertory.project_search.folder import Folder


def test_unchanged_files_are_the_same_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same tuple while no file changes, and the same item for each unchanged file."""
    monkeypatch.setattr(module, "RESCAN_INTERVAL_S", -1.0)
    (tmp_path / "a.py").write_text("one")
    (tmp_path / "b.py").write_text("two")
    folder = Folder(tmp_path)
    first = folder.items()
    assert [item.id for item in first] == ["files/a.py", "files/b.py"]
    (tmp_path / "b.py").write_text("three")
    second = folder.items()
    assert second is not first
    assert [item.body for item in second] == ["one", "three"]
    (tmp_path / "a.py").unlink()
    assert [item.body for item in folder.items()] == ["three"]


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single files and the total have a limit."""
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    for name, text in (("a.py", "12345"), ("b.py", "x" * (1 << 19)), ("c.py", "123456")):
        (tmp_path / name).write_text(text)
    assert [item.id for item in Folder(tmp_path).items()] == ["files/a.py"]
