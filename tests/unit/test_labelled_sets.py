"""Labelled sets are checked before any search: errors name the file and the line."""

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
        (b'{"id": "r", "x": ' + b"[" * 100_000, "(recurs|truncat)"),  # Python 3.14 reads on
    ],
    ids=["blank", "not UTF-8", "nested too deeply"],
)
def test_the_error_for_an_invalid_query_names_its_file_and_line(
    tmp_path: Path, line: bytes, message: str
) -> None:
    """A set may have thousands of lines."""
    folder = labelled_set(tmp_path / "set", b'{"id": "q", "text": "x"}\n' + line + b"\n")
    with pytest.raises(UsageError, match=rf"queries\.jsonl:2: .*{message}.*[^.]\.$"):
        read_sets([folder])


def test_a_query_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    """A problem names it; the other queries of the set are measured."""
    long = b'{"id": "r", "text": "' + b"x" * 40_000 + b'"}\n'
    [one] = read_sets([labelled_set(tmp_path / "set", long + b'{"id": "q", "text": "x"}\n')])
    assert [query.id for query in one.queries] == ["q"]
    assert "The query r has 40,000 characters and is left out" in one.problems[0]


def test_a_judged_set_keeps_the_queries_without_an_answer(tmp_path: Path) -> None:
    """Judged queries keep all grades, zeros included; rankings are measured for answerable ones."""
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
def test_an_invalid_grade_is_refused(tmp_path: Path, grade: str) -> None:
    """Grades are whole numbers as in trec_eval, and small, since it counts them in an array."""
    folder = labelled_set(tmp_path / "set")
    line = f'{{"query_id": "q", "item_id": "a", "grade": {grade}}}\n'
    (folder / "qrels.jsonl").write_text(line)
    with pytest.raises(
        UsageError, match=r"qrels\.jsonl:1: grade must be a whole number up to 1,000"
    ):
        read_sets([folder])


def test_a_folder_without_a_corpus_is_refused(tmp_path: Path) -> None:
    """It is not measured as a ranking that finds nothing."""
    good = labelled_set(tmp_path / "good")
    bad = labelled_set(tmp_path / "bad")
    (bad / "corpus.jsonl").unlink()
    with pytest.raises(UsageError, match=r"has no corpus\.jsonl"):
        read_sets([tmp_path / ("x" * 300)])  # too long for a file name
    with pytest.raises(UsageError, match=r"bad has no corpus\.jsonl; a labelled set is"):
        read_sets([good, bad])


def test_a_set_is_read_once_for_all_its_paths(tmp_path: Path) -> None:
    """A file stands for its folder; a second set with the same name is named by its path."""
    folder = labelled_set(tmp_path / "set")
    (tmp_path / "more").mkdir()
    other = labelled_set(tmp_path / "more" / "set")
    sets = read_sets([folder, *sorted(folder.iterdir()), tmp_path / "more" / ".." / "set", other])
    assert [(one.name, one.folder.resolve()) for one in sets] == [
        ("set", folder),
        (str(other), other),
    ]


def test_right_answers_that_the_corpus_lacks_are_listed(tmp_path: Path) -> None:
    """An item with the grade 0 is not a right answer."""
    [one] = read_sets([labelled_set(tmp_path / "set")])
    assert missing(one.queries, ["a"]) == []
    assert missing(one.queries, ["c"]) == ["a"]


def test_an_unreadable_line_of_a_corpus_is_left_out(tmp_path: Path) -> None:
    """A problem names the line; the other lines are items."""
    file = tmp_path / "corpus.jsonl"
    deep = json.dumps({"id": "b"})[:-1].encode() + b', "x": ' + b"[" * 100_000
    file.write_bytes(b'{"id": "\xff"}\n' + deep + b"\n" + CORPUS)
    scan = Corpus("set", file).scan()
    assert [item.id for item in scan.items] == ["a"]
    assert [(one.severity, one.line) for one in scan.problems] == [
        (Severity.ERROR, 1),
        (Severity.ERROR, 2),
    ]


def test_a_duplicate_query_id_is_refused(tmp_path: Path) -> None:
    """Otherwise both queries would be measured with the same right answers."""
    twice = b'{"id": "q", "text": "x"}\n\n{"id": "q", "text": "y"}\n'
    with pytest.raises(UsageError, match=r"queries\.jsonl:3: the id q is already used in line 1"):
        read_sets([labelled_set(tmp_path / "set", twice)])


def test_grades_without_a_query_and_queries_without_an_answer_are_counted(tmp_path: Path) -> None:
    """A misspelt id changes the metrics, so a problem must mention it."""
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
    """A later grade of 0 removes the right answer."""
    folder = labelled_set(tmp_path / "set")
    lines = [("a", 1), ("b", 2), ("a", 0), ("b", 1)]
    rows = [f'{{"query_id": "q", "item_id": "{item}", "grade": {grade}}}' for item, grade in lines]
    (folder / "qrels.jsonl").write_text("\n".join(rows))
    [one] = read_sets([folder])
    assert one.queries[0].grades == {"b": 1}


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    """Some editors begin a file with it."""
    marked = b'\xef\xbb\xbf{"id": "q", "text": "x"}\n'
    [one] = read_sets([labelled_set(tmp_path / "set", marked)])
    assert [query.id for query in one.queries] == ["q"]
