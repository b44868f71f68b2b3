"""The data that the encoder is trained on: its form, its licences, and what is kept out of it."""

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


def test_every_query_has_its_item(of: dict[str, Item], asked: list[Query]) -> None:
    """No query stands twice, in whatever case and with whatever punctuation."""
    assert {query.item for query in asked} <= of.keys()
    assert max(Counter(normal(query.text) for query in asked).values()) == 1
    assert {query.style for query in asked} == STYLES
    assert all(query.text.strip() for query in asked)


def test_every_item_says_where_it_is_from_and_is_open(of: dict[str, Item]) -> None:
    """A package with its version, or a repository with its commit and path."""
    assert {item.licence for item in of.values()} <= LICENCES
    for item in of.values():
        kind, _, source = item.provenance.partition(":")
        assert kind in {"npm", "PyPI", "github"}, item
        assert "@" in source, item


def test_the_test_has_whole_servers_and_a_fifth_of_the_skills(
    of: dict[str, Item], asked: list[Query]
) -> None:
    """None of their queries is trained on."""
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
    """In another order, with polite words around it, and with one other word."""
    is_long = "team" in text
    ours = ["rename the shared planner board of the team" if is_long else "rename a planner board"]
    assert Texts(ours).near([normal(text)]) == [(normal(text), ours[0])]


def test_a_query_about_the_same_subject_is_not_near() -> None:
    """Two other words, or another one of three."""
    ours = Texts(["list the open pull requests of my team", "create a planner column"])
    theirs = ["close the open pull requests of another team today", "delete a planner column"]
    assert ours.near(theirs) == []


def test_a_query_is_the_same_without_its_spaces() -> None:
    """As in a name, or typed in haste."""
    ours = Texts([normal("to-do list, renamed")])
    theirs = [normal("ToDo list renamed"), normal("todolistrenamed"), normal("todo list rename")]
    assert ours.same(theirs) == theirs[:2]


def test_the_datasheet_has_the_numbers(of: dict[str, Item], asked: list[Query]) -> None:
    """Its counts are those of the files."""
    text = " ".join((DATA / "DATASHEET.md").read_text("utf-8").split())
    assert f"`queries.jsonl`: {len(asked):,} queries" in text
    assert f"`items.jsonl`: {len(of):,} real items" in text
    for origin in {query.origin for query in asked}:
        own = [query.item for query in asked if query.origin == origin]
        assert f"| `{origin}` | {len(own):,} | {len({*own}):,} |" in text
    trained = [item for item in of.values() if item.part is Part.TRAIN]
    assert f"from {sum(trigger(item) is not None for item in trained):,} training" in text


def measured(folder: Path, name: str, text: str, item: Item) -> None:
    """Write a set that measures: one query, and the item that answers it."""
    (folder / name).mkdir(parents=True)
    lines = {
        "corpus": {"id": "a", "name": item.name, "description": item.description},
        "queries": {"id": "q", "text": text},
        "qrels": {"query_id": "q", "item_id": "a", "grade": 1},
    }
    for file, line in lines.items():
        (folder / name / f"{file}.jsonl").write_text(json.dumps(line) + "\n", "utf-8")


def overlaps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of the check for a folder of sets."""
    monkeypatch.setattr(sys, "argv", ["overlap", str(folder)])
    return overlap.main()


@pytest.mark.parametrize(
    ("name", "part", "code"),
    [("typo", Part.TRAIN, 1), ("typo", Part.VALIDATION, 0), ("judged", Part.TRAIN, 0)],
)
def test_a_right_answer_that_is_trained_on_is_found(
    of: dict[str, Item],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    part: Part,
    code: int,
) -> None:
    """The check fails for each set but `judged`, whose answers the datasheet counts."""
    one = next(item for item in of.values() if item.part is part and len(item.description) > 300)
    for each in overlap.MEASURES:
        kept = one if each == name else msgspec.structs.replace(one, name="another")
        measured(tmp_path, each, "qwertz uiop", kept)
    assert overlaps(tmp_path, monkeypatch) == code
    assert f"{name}: 1 queries" in capsys.readouterr().out


def test_no_item_that_typo_asks_for_is_trained_on(of: dict[str, Item]) -> None:
    """Two were overlooked until the check looked for right answers."""
    for item in ("ms365__delete-onedrive-file", "ms365__get-excel-range"):
        assert of[item].part is Part.VALIDATION


def test_a_check_that_compares_nothing_fails(
    of: dict[str, Item],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A wrong folder, an empty one, and one without all sets are named, not passed."""
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
    """A folder that is no set, and a set that has no item of the test."""
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


def test_an_item_has_the_licence_that_its_own_file_names(of: dict[str, Item]) -> None:
    """Not that of its repository; what is not open is in no part."""
    science = "skills/K-Dense-AI__claude-scientific-skills/scientific-skills"
    assert of[f"{science}/qiskit"].licence == "Apache-2.0"
    assert of[f"{science}/gget"].licence == "BSD-2-Clause"
    closed = {*(f"{science}/{name}" for name in ("pdf", "pptx", "xlsx", "rowan", "etetoolkit"))}
    closed |= {"skills/openclaw__skills/skills/awspace/pdf"}
    closed |= {"skills/github__awesome-copilot/skills/quality-playbook"}
    assert not closed & of.keys()
