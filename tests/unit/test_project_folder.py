"""The text files of a project's folder, as they are looked at for a search."""

from pathlib import Path

import pytest

from repertory.project_search import folder as module
from repertory.project_search.folder import Folder


def test_what_did_not_change_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tuple as long as no file changed; else the same item for each that did not."""
    monkeypatch.setattr(module, "FRESH", -1.0)
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


def test_only_so_much_is_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large is left out, alone and together."""
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    for name, text in (("a.py", "12345"), ("b.py", "x" * (1 << 19)), ("c.py", "123456")):
        (tmp_path / name).write_text(text)
    assert [item.id for item in Folder(tmp_path).items()] == ["files/a.py"]
