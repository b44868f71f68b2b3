"""Sources built from configuration entries."""

from pathlib import Path
from typing import Any

import pytest

from repertory.errors import ConfigurationError
from repertory.sources.registry import build

FOLDER_TYPES = [
    "skills",
    "python-skills",
    "markdown-skills",
    "gemini-commands",
    "neuroscript",
    "documents",
    "tools",
]


@pytest.mark.parametrize("source_type", FOLDER_TYPES)
def test_a_folder_is_relative_to_the_configuration(tmp_path: Path, source_type: str) -> None:
    """The default name of the source is the folder's name."""
    (tmp_path / "team").mkdir()
    [source] = build({"type": source_type, "path": "team"}, tmp_path)
    assert (source.type, source.name) == (source_type, "team")
    assert source.location == str(tmp_path / "team")
    [named] = build({"type": source_type, "path": str(tmp_path / "team"), "name": "n"}, Path("/"))
    assert named.identity() == {**source.identity(), "name": "n"}


def test_a_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``~`` is the user's own home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    [source] = build({"type": "skills", "path": "~/skills"}, Path("/elsewhere"))
    assert source.location == str(tmp_path / "skills")


def test_built_in_skills_are_part_of_the_entry() -> None:
    """The entry has the names and texts of skills instead of a path."""
    [source] = build({"type": "builtin-skills", "skills": {"hi": "Say hello."}}, Path("/"))
    assert [item.id for item in source.scan().items] == ["builtin/hi"]


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        ({}, "has no `type`"),
        ({"name": "team", "path": "skills"}, "'team' has no `type`"),
        ({"type": "skils"}, "'skils'"),
        ({"type": ["skills"]}, "skills"),
        ({"type": "skills"}, "path"),
        ({"type": "skills", "path": ""}, "path"),
        ({"type": "skills", "path": 3}, "3"),
        ({"type": "skills", "path": "a\0b"}, "path"),
        ({"type": "skills", "path": ".", "depth": 3}, "'depth'"),
        ({"type": "skills", "path": ".", "name": "a/b"}, "'a/b'"),
        ({"type": "skills", "path": ".", "name": " "}, "' '"),
        ({"type": "skills", "path": ".", "name": 5}, "5"),
        ({"type": "documents", "path": ".", "include": "*.py"}, "list"),
        ({"type": "documents", "path": ".", "include": ["*.py"] * 101}, "100"),
        ({"type": "documents", "path": ".", "include": [""]}, "''"),
        ({"type": "documents", "path": ".", "include": [3]}, "3"),
        ({"type": "documents", "path": ".", "include": ["[z-a]"]}, "not a pattern"),
        ({"type": "skills", "path": ".", "include": ["*.py"]}, "'include'"),
        ({"type": "builtin-skills"}, "skills"),
        ({"type": "builtin-skills", "skills": {"a": 1}}, "'a'"),
        ({"type": "builtin-skills", "path": "."}, "'path'"),
    ],
)
def test_a_wrong_entry_is_refused_by_name(entry: dict[str, Any], named: str) -> None:
    """The message contains the wrong key or value."""
    with pytest.raises(ConfigurationError) as refused:
        build(entry, Path("/"))
    assert named in str(refused.value)


def test_a_wrong_option_is_refused_with_the_options_that_users_may_set() -> None:
    """The option that only the program sets is not among them."""
    with pytest.raises(
        ConfigurationError, match="it has url, path, sha256, folder, reads, name, refresh"
    ) as refused:
        build({"type": "archive", "branch": "main", "store": "/data"}, Path("/"))
    assert "store" not in str(refused.value)
