"""Labelled sets as people write them: errors name the file and the line, before any search."""

import json
from pathlib import Path

import pytest

from repertory.errors import UsageError
from repertory.sources.corpus import Corpus
from repertory.sources.source import Severity
from repertory_eval.labelled import missing, read_sets

CORPUS = b'{"id": "a", "kind": "tool", "name": "a"}\n'
QRELS = b'{"query_id": "q", "item_id": "a"}\n{"query_id": "q", "item_id": "b", "grade": 0}\n'


def labelled_set(folder: Path, queries: bytes = b'{"id": "q", "text": "x"}\n') -> Path:
    """A labelled set of one tool."""
    folder.mkdir()
    (folder / "corpus.jsonl").write_bytes(CORPUS)
    (folder / "queries.jsonl").write_bytes(queries)
    (folder / "qrels.jsonl").write_bytes(QRELS)
    return folder


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "r", "text": " "}', "The query has no text"),
        (b'{"id": "r\xff", "text": "x"}', "(?i:utf-8)"),
        (b'{"id": "r", "x": ' + b"[" * 100_000, "recursion"),
    ],
    ids=["blank", "not UTF-8", "nested too deeply"],
)
def test_a_wrong_query_is_named_by_file_and_line(tmp_path: Path, line: bytes, message: str) -> None:
    """The error names the one line of thousands that is invalid."""
    folder = labelled_set(tmp_path / "set", b'{"id": "q", "text": "x"}\n' + line + b"\n")
    with pytest.raises(UsageError, match=rf"queries\.jsonl:2: .*{message}.*[^.]\.$"):
        read_sets([folder])


def test_a_query_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    """It does not reject the other queries of the set, and is named."""
    long = b'{"id": "r", "text": "' + b"x" * 40_000 + b'"}\n'
    [one] = read_sets([labelled_set(tmp_path / "set", long + b'{"id": "q", "text": "x"}\n')])
    assert [query.id for query in one.queries] == ["q"]
    assert "The query r has 40,000 characters and is left out" in one.problems[0]


def test_a_judged_set_keeps_the_queries_without_an_answer(tmp_path: Path) -> None:
    """Its judged queries have all grades, zeros included; its order is measured where it can be."""
    queries = b"".join(b'{"id": "%s", "text": "x"}\n' % name for name in (b"q", b"r", b"s"))
    folder = labelled_set(tmp_path / "set", queries)
    (folder / "judgements.jsonl").write_text(
        '{"query_id": "q", "item_id": "a", "grade": 3}\n'
        '{"query_id": "q", "item_id": "b", "grade": 0}\n'
        '{"query_id": "r", "item_id": "a", "grade": 0}\n'
    )
    [one] = read_sets([folder])
    assert {query.id: query.grades for query in one.queries} == {"q": {"a": 1}}
    assert {query.id: query.grades for query in one.judged} == {
        "q": {"a": 3, "b": 0},
        "r": {"a": 0},
    }
    (folder / "qrels.jsonl").write_text("")
    [unanswerable] = read_sets([folder])
    assert (len(unanswerable.queries), len(unanswerable.judged)) == (0, 2)


@pytest.mark.parametrize("grade", ["0.5", "1001", "1e300"])
def test_a_grade_that_cannot_be_measured_is_refused(tmp_path: Path, grade: str) -> None:
    """Grades are whole numbers, as in trec_eval, and small, since it counts them in an array."""
    folder = labelled_set(tmp_path / "set")
    line = f'{{"query_id": "q", "item_id": "a", "grade": {grade}}}\n'
    (folder / "qrels.jsonl").write_text(line)
    with pytest.raises(
        UsageError, match=r"qrels\.jsonl:1: grade must be a whole number up to 1,000"
    ):
        read_sets([folder])


def test_a_folder_without_a_corpus_is_no_labelled_set(tmp_path: Path) -> None:
    """It is refused, not measured as a ranking that finds nothing."""
    good = labelled_set(tmp_path / "good")
    bad = labelled_set(tmp_path / "bad")
    (bad / "corpus.jsonl").unlink()
    with pytest.raises(UsageError, match=r"has no corpus\.jsonl"):
        read_sets([tmp_path / ("x" * 300)])  # too long for the name of a file
    with pytest.raises(UsageError, match=r"bad has no corpus\.jsonl; a labelled set is"):
        read_sets([good, bad])


def test_a_set_is_read_once_for_all_its_paths(tmp_path: Path) -> None:
    """A file stands for its folder; another set of the same name goes by its path."""
    folder = labelled_set(tmp_path / "set")
    (tmp_path / "more").mkdir()
    other = labelled_set(tmp_path / "more" / "set")
    sets = read_sets([folder, *sorted(folder.iterdir()), tmp_path / "more" / ".." / "set", other])
    assert [(one.name, one.folder.resolve()) for one in sets] == [
        ("set", folder),
        (str(other), other),
    ]


def test_right_answers_that_the_corpus_lacks_are_known(tmp_path: Path) -> None:
    """Only graded answers are right answers."""
    [one] = read_sets([labelled_set(tmp_path / "set")])
    assert missing(one.queries, ["a"]) == []
    assert missing(one.queries, ["c"]) == ["a"]


def test_a_line_of_a_corpus_that_is_not_utf8_is_left_out(tmp_path: Path) -> None:
    """It is a problem with its line; the others are items."""
    file = tmp_path / "corpus.jsonl"
    deep = json.dumps({"id": "b"})[:-1].encode() + b', "x": ' + b"[" * 100_000
    file.write_bytes(b'{"id": "\xff"}\n' + deep + b"\n" + CORPUS)
    scan = Corpus("set", file).scan()
    assert [item.id for item in scan.items] == ["a"]
    assert [(one.severity, one.line) for one in scan.problems] == [
        (Severity.ERROR, 1),
        (Severity.ERROR, 2),
    ]


def test_an_id_that_stands_twice_is_named(tmp_path: Path) -> None:
    """Both queries would be measured with the right answers of one."""
    twice = b'{"id": "q", "text": "x"}\n\n{"id": "q", "text": "y"}\n'
    with pytest.raises(UsageError, match=r"queries\.jsonl:3: the id q is already used in line 1"):
        read_sets([labelled_set(tmp_path / "set", twice)])


def test_grades_and_queries_that_do_not_meet_are_counted(tmp_path: Path) -> None:
    """A misspelt id changes the figures, and nothing else would say so."""
    queries = b"".join(b'{"id": "%s", "text": "x"}\n' % name for name in (b"q", b"r", b"s"))
    folder = labelled_set(tmp_path / "set", queries)
    (folder / "qrels.jsonl").write_bytes(QRELS + b'{"query_id": "R", "item_id": "a"}\n')
    [one] = read_sets([folder])
    assert one.problems == [
        "Ids with grades but without a query in queries.jsonl: 1.",
        "Queries without a right answer, which are left out: 2.",
    ]
    [whole] = read_sets([labelled_set(tmp_path / "whole")])
    assert whole.problems == []


def test_a_later_grade_replaces_an_earlier_one(tmp_path: Path) -> None:
    """Also one of 0, which takes the right answer back."""
    folder = labelled_set(tmp_path / "set")
    lines = [("a", 1), ("b", 2), ("a", 0), ("b", 1)]
    rows = [f'{{"query_id": "q", "item_id": "{item}", "grade": {grade}}}' for item, grade in lines]
    (folder / "qrels.jsonl").write_text("\n".join(rows))
    [one] = read_sets([folder])
    assert one.queries[0].grades == {"b": 1}


def test_a_byte_order_mark_is_no_part_of_a_line(tmp_path: Path) -> None:
    """Some editors begin a file with one."""
    marked = b'\xef\xbb\xbf{"id": "q", "text": "x"}\n'
    [one] = read_sets([labelled_set(tmp_path / "set", marked)])
    assert [query.id for query in one.queries] == ["q"]
