"""Rebuilds of the skill index from real folders with a real model."""

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.load import load_engine
from repertory.errors import UsageError
from repertory.skill_discovery import SkillDiscoveryIndex, rebuild_skill_index
from tests.support.model_folders import write_model

BUILTINS = {"remember": "Write down what was decided."}
EVERYTHING = ["builtin/remember", "markdown/greet", "python/mail", "skills/pdf"]

Rebuild = Callable[[], int]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingEngine:
    """A small model of dimension 8."""
    return engine_of(tmp_path_factory.mktemp("models"))


def engine_of(folder: Path, dimension: int = 8, seed: int = 1) -> EmbeddingEngine:
    """A small model of the given dimension."""
    model = write_model(folder / f"model-{dimension}-{seed}", dimension=dimension, seed=seed)
    return load_engine(str(model), "cpu", folder / "data")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SkillDiscoveryIndex]:
    """An empty index."""
    with SkillDiscoveryIndex.open(tmp_path / "index") as index:
        yield index


@pytest.fixture
def rebuild(tmp_path: Path, index: SkillDiscoveryIndex, engine: EmbeddingEngine) -> Rebuild:
    """Rebuild from the folders ``skills`` and ``python``, which have one skill of each kind."""
    manifest(tmp_path, "mail", "Send a mail.")
    (tmp_path / "skills" / "pdf" / "references").mkdir(parents=True)
    (tmp_path / "skills" / "pdf" / "SKILL.md").write_text(
        "---\nname: pdf\ndescription: Fill in forms.\n---\n"
    )
    (tmp_path / "skills" / "pdf" / "references" / "forms.md").write_text("No skill of its own.")
    (tmp_path / "skills" / "greet.md").write_text("# Greet\n\nSay hello.\n")
    return lambda: rebuild_skill_index(
        index, engine, tmp_path / "skills", tmp_path / "python", BUILTINS
    )


def manifest(folder: Path, name: str, description: str) -> None:
    """Write a Python skill."""
    (folder / "python" / name).mkdir(parents=True, exist_ok=True)
    text = json.dumps({"name": name, "description": description})
    (folder / "python" / name / "skill.json").write_text(text)


def ids(index: SkillDiscoveryIndex) -> list[str]:
    """The indexed ids."""
    return sorted(entry.skill_id for entry in index.entries())


def test_each_kind_is_indexed_once(rebuild: Rebuild, index: SkillDiscoveryIndex) -> None:
    """The documents of a skill are not skills; a second run does nothing."""
    assert rebuild() == 4
    assert ids(index) == EVERYTHING
    assert {entry.source for entry in index.entries()} == {"python", "markdown", "builtin"}
    assert rebuild() == 0


def test_a_lower_case_skill_file_makes_its_folder_one_skill(
    rebuild: Rebuild, index: SkillDiscoveryIndex, tmp_path: Path
) -> None:
    """Other files in the folder are part of that skill."""
    for name in ("skill.md", "notes.md"):
        (tmp_path / "skills" / "lower").mkdir(exist_ok=True)
        (tmp_path / "skills" / "lower" / name).write_text("# Lower\n\nDo something.\n")
    rebuild()
    assert ids(index) == sorted([*EVERYTHING, "skills/lower"])


def test_only_changed_skills_are_embedded(
    rebuild: Rebuild, index: SkillDiscoveryIndex, tmp_path: Path
) -> None:
    """A changed name or description counts, and the rest of the file does not."""
    rebuild()
    manifest(tmp_path, "mail", "Send a letter.")
    (tmp_path / "skills" / "greet.md").write_text("# Greet\n\nSay hello.\n\nAnd more below.\n")
    assert rebuild() == 1
    described = {entry.skill_id: entry.description for entry in index.entries()}
    assert described["python/mail"] == "Send a letter."


def test_deleted_skills_are_removed(
    rebuild: Rebuild, index: SkillDiscoveryIndex, tmp_path: Path
) -> None:
    """Even the last skill of a folder is removed, if the folder is readable."""
    rebuild()
    shutil.rmtree(tmp_path / "python" / "mail")
    (tmp_path / "skills" / "greet.md").unlink()
    assert rebuild() == 0
    assert ids(index) == ["builtin/remember", "skills/pdf"]


def test_unreadable_skills_are_kept(
    rebuild: Rebuild, index: SkillDiscoveryIndex, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A missing folder or a broken file is logged, and is never a deletion."""
    caplog.set_level(logging.INFO, "repertory.skill_discovery")
    rebuild()
    (tmp_path / "skills").rename(tmp_path / "away")
    (tmp_path / "python" / "mail" / "skill.json").write_text("{")
    assert rebuild() == 0
    assert ids(index) == EVERYTHING
    assert [record.message for record in caplog.records].count("skill_problem") == 3
    (tmp_path / "away").rename(tmp_path / "skills")
    assert rebuild() == 0


def test_an_unreadable_folder_stops_no_rebuild(
    rebuild: Rebuild, index: SkillDiscoveryIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is simulated, because the tests may run as root."""
    locked = tmp_path / "skills" / "locked"
    locked.mkdir()
    stat = os.stat

    def refuse(path: Any, **options: Any) -> os.stat_result:  # noqa: ANN401 - as that of os
        if locked in Path(os.fsdecode(path) if isinstance(path, bytes) else str(path)).parents:
            raise PermissionError(13, "Permission denied")
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", refuse)
    assert rebuild() == 4
    assert ids(index) == EVERYTHING


def test_missing_folders_are_empty(
    index: SkillDiscoveryIndex, engine: EmbeddingEngine, tmp_path: Path
) -> None:
    """A first run without folders is no error."""
    assert rebuild_skill_index(index, engine, tmp_path / "no", tmp_path / "none") == 0
    assert index.indexed_count() == 0


def test_skills_indexed_by_hand_stay_unchanged(
    rebuild: Rebuild, index: SkillDiscoveryIndex
) -> None:
    """A rebuild neither removes nor replaces them."""
    for skill_id in ("mine", "python/mail"):
        index.index_skill(skill_id, "By hand", "As I like it.", "builtin", [1.0] * 8)
    assert rebuild() == 3
    assert ids(index) == sorted([*EVERYTHING, "mine"])
    assert [entry.name for entry in index.entries()].count("By hand") == 2
    index.remove_skill("python/mail")
    assert rebuild() == 1


@pytest.mark.parametrize(("dimension", "seed"), [(8, 2), (12, 1)])
def test_another_model_embeds_everything_again(
    rebuild: Rebuild, index: SkillDiscoveryIndex, tmp_path: Path, dimension: int, seed: int
) -> None:
    """Unreadable skills are included, and the dimension may differ."""
    rebuild()
    shutil.rmtree(tmp_path / "python")
    other = engine_of(tmp_path, dimension, seed)
    folders = (tmp_path / "skills", tmp_path / "python")
    assert rebuild_skill_index(index, other, *folders, BUILTINS) == 4
    assert (ids(index), index.dimension) == (EVERYTHING, dimension)
    assert rebuild_skill_index(index, other, *folders, BUILTINS) == 0


def test_a_model_that_does_not_fit_skills_indexed_by_hand_is_rejected(
    rebuild: Rebuild, index: SkillDiscoveryIndex, tmp_path: Path
) -> None:
    """They cannot be embedded again, so the index stays unchanged."""
    rebuild()
    index.index_skill("mine", "By hand", "As I like it.", "builtin", [1.0] * 8)
    other = engine_of(tmp_path, dimension=12)
    with pytest.raises(UsageError, match=r"indexed by hand \(1\)"):
        rebuild_skill_index(index, other, tmp_path / "skills", tmp_path / "python")
    assert ids(index) == sorted([*EVERYTHING, "mine"])
