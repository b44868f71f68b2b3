"""The encoder's training data: its form, its licences, and its separation from test data."""

import json
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from training import heldout, overlap
from training.dataset import DATA, SET, Item, Part, Query, items, only, queries
from training.overlap import Texts, normal
from training.triggers import trigger

LICENCES = {
    *(
        "MIT",
        "ISC",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "MPL-2.0",
        "CC0-1.0",
        "CC-BY-3.0",
        "CC-BY-4.0",
    ),
}
STYLES = set("kvrcsaptue")
TEST_SERVERS = {"brave-search", "kubernetes", "pdf", "trello"}


@pytest.fixture(scope="module")
def of() -> dict[str, Item]:
    """The items by id."""
    return items()


@pytest.fixture(scope="module")
def asked() -> list[Query]:
    """The queries."""
    return queries()


def test_every_query_has_an_existing_item_and_a_unique_text(
    of: dict[str, Item], asked: list[Query]
) -> None:
    """Texts that differ only in case or punctuation count as equal."""
    assert {query.item for query in asked} <= of.keys()
    assert max(Counter(normal(query.text) for query in asked).values()) == 1
    assert {query.style for query in asked} == STYLES
    assert all(query.text.strip() for query in asked)


def test_every_item_has_a_provenance_and_an_open_licence(of: dict[str, Item]) -> None:
    """The provenance is a package with its version, or a repository with a commit and path."""
    assert {item.licence for item in of.values()} <= LICENCES
    for item in of.values():
        kind, _, source = item.provenance.partition(":")
        assert kind in {"npm", "PyPI", "github"}, item
        assert "@" in source, item


def test_the_test_part_has_whole_servers_and_a_fifth_of_the_skills(
    of: dict[str, Item], asked: list[Query]
) -> None:
    """Their queries are not used for training."""
    assert {item.server for item in of.values() if item.part is Part.TEST} >= TEST_SERVERS
    assert not {item.server for item in of.values() if item.part is not Part.TEST} & TEST_SERVERS
    skills = {q.item for q in asked if q.origin == "written" and of[q.item].kind == "skill"}
    share = sum(of[item].part is Part.TEST for item in skills) / len(skills)
    assert 0.19 <= share <= 0.22
    trained = only(Part.TRAIN, asked, of)
    assert len(trained) > 0.9 * len(asked)
    assert all(of[query.item].part is Part.TRAIN for query in trained)


@pytest.mark.parametrize(
    "text",
    [
        "Rename planner-board!",
        "Could you please rename a planner board for me?",
        "Rename one of the planner boards",
        "retitle the shared planner board of the team",
        "in the team the shared planner board, rename",
    ],
)
def test_a_nearly_equal_query_is_found(text: str) -> None:
    """It may differ in word order, polite phrases, number, or one word of a long query."""
    is_long = "team" in text
    ours = ["rename the shared planner board of the team" if is_long else "rename a planner board"]
    assert Texts(ours).near([normal(text)]) == [(normal(text), ours[0])]


def test_a_query_about_the_same_subject_is_not_near() -> None:
    """Queries that differ in two words, or in one of three, are not nearly equal."""
    ours = Texts(["list the open pull requests of my team", "create a planner column"])
    theirs = ["close the open pull requests of another team today", "delete a planner column"]
    assert ours.near(theirs) == []


def test_a_query_without_spaces_is_the_same_query() -> None:
    """Spaces may be missing in names or in hurried typing."""
    ours = Texts([normal("to-do list, renamed")])
    theirs = [normal("ToDo list renamed"), normal("todolistrenamed"), normal("todo list rename")]
    assert ours.same(theirs) == theirs[:2]


def test_the_datasheet_has_the_correct_counts(of: dict[str, Item], asked: list[Query]) -> None:
    """Its numbers of queries, items and triggers equal those of the files."""
    text = " ".join((DATA / "DATASHEET.md").read_text("utf-8").split())
    assert f"`queries.jsonl`: {len(asked):,} queries" in text
    assert f"`items.jsonl`: {len(of):,} real items" in text
    for origin in {query.origin for query in asked}:
        own = [query.item for query in asked if query.origin == origin]
        assert f"| `{origin}` | {len(own):,} | {len({*own}):,} |" in text
    trained = [item for item in of.values() if item.part is Part.TRAIN]
    assert f"from {sum(trigger(item) is not None for item in trained):,} training" in text


def measured(folder: Path, name: str, text: str, item: Item) -> None:
    """Write an evaluation set with one query and the item that answers it."""
    (folder / name).mkdir(parents=True)
    lines = {
        "corpus": {"id": "a", "name": item.name, "description": item.description},
        "queries": {"id": "q", "text": text},
        "qrels": {"query_id": "q", "item_id": "a", "grade": 1},
    }
    for file, line in lines.items():
        (folder / name / f"{file}.jsonl").write_text(json.dumps(line) + "\n", "utf-8")


def overlaps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the overlap check for a folder of evaluation sets."""
    monkeypatch.setattr(sys, "argv", ["overlap", str(folder)])
    return overlap.main()


@pytest.mark.parametrize(
    ("name", "part", "code"),
    [("typo", Part.TRAIN, 1), ("typo", Part.VALIDATION, 0), ("judged", Part.TRAIN, 0)],
)
def test_the_check_finds_answers_in_the_training_data(
    of: dict[str, Item],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    part: Part,
    code: int,
) -> None:
    """It fails for every set except `judged`, whose overlap the datasheet reports."""
    one = next(item for item in of.values() if item.part is part and len(item.description) > 300)
    for each in overlap.MEASURES:
        kept = one if each == name else msgspec.structs.replace(one, name="another")
        measured(tmp_path, each, "qwertz uiop", kept)
    assert overlaps(tmp_path, monkeypatch) == code
    assert f"{name}: 1 queries" in capsys.readouterr().out


def test_answers_of_the_set_typo_are_not_trained_on(of: dict[str, Item]) -> None:
    """These two items were overlooked until the check compared answers too."""
    for item in ("ms365__delete-onedrive-file", "ms365__get-excel-range"):
        assert of[item].part is Part.VALIDATION


def test_a_check_that_compares_nothing_fails(
    of: dict[str, Item],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A missing folder, an empty one, and one that lacks a set are errors that name the folder."""
    one = next(iter(of.values()))
    for name in overlap.MEASURES[1:]:
        measured(tmp_path / "some", name, "qwertz uiop", one)
    (tmp_path / "empty").mkdir()
    for folder in ("missing", "empty", "some"):
        with pytest.raises(SystemExit) as ended:
            overlaps(tmp_path / folder, monkeypatch)
        assert ended.value.code == 2
        assert f"{folder} lacks the sets azure_mcp" in capsys.readouterr().err


def test_a_test_without_queries_is_not_written(
    of: dict[str, Item],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A folder without a set, and a set without answers from the test part, are errors."""
    measured(tmp_path, "other", "qwertz uiop", next(iter(of.values())))
    for folder, message in (("missing", "lacks corpus.jsonl"), ("other", "No query of")):
        monkeypatch.setattr(sys, "argv", ["heldout", str(tmp_path / folder), str(tmp_path / "x")])
        with pytest.raises(SystemExit) as ended:
            heldout.main()
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "x").exists()
    monkeypatch.setattr(sys, "argv", ["heldout", str(tmp_path / "other"), str(tmp_path / "x")])
    kept = next(one.id for one in of.values() if one.part is Part.TEST)
    right = {"query_id": "q", "item_id": kept}
    (tmp_path / "other" / "qrels.jsonl").write_text(json.dumps(right) + "\n", "utf-8")
    assert heldout.main() == 0
    assert {file.name for file in (tmp_path / "x").iterdir()} == set(SET)


def test_an_item_has_the_licence_named_in_its_own_file(of: dict[str, Item]) -> None:
    """A file's licence overrides its repository's; items without an open licence are excluded."""
    science = "skills/K-Dense-AI__claude-scientific-skills/scientific-skills"
    assert of[f"{science}/qiskit"].licence == "Apache-2.0"
    assert of[f"{science}/gget"].licence == "BSD-2-Clause"
    closed = {*(f"{science}/{name}" for name in ("pdf", "pptx", "xlsx", "rowan", "etetoolkit"))}
    closed |= {"skills/openclaw__skills/skills/awspace/pdf"}
    closed |= {"skills/github__awesome-copilot/skills/quality-playbook"}
    assert not closed & of.keys()
