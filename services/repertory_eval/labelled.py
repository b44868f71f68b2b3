"""A labelled set: queries with the items that answer them, or with the grades of judged items."""

import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from repertory.errors import UsageError
from repertory.search.query import MAX_QUERY_LENGTH
from repertory.usage.labels import CORPUS, PROPOSED, QUERIES, RIGHT

MAX_GRADE = 1_000  # trec_eval allocates an array of this length
JUDGEMENTS = "judgements.jsonl"  # only in a judged set

T = TypeVar("T")


class LabelledQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query and the grades of items, up to ``MAX_GRADE``.

    A labelled query has the items that answer it, with grades from 1. A judged query has all items
    that were judged, with grades from 0.
    """

    id: str
    text: str
    tags: tuple[str, ...] = ()
    grades: dict[str, int] = {}

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise UsageError("The query has no text, so no search can answer it.")


class _Judgement(msgspec.Struct, frozen=True):
    query_id: str
    item_id: str
    grade: float = 1.0

    def __post_init__(self) -> None:
        if not self.grade.is_integer() or self.grade > MAX_GRADE:
            raise UsageError(f"grade must be a whole number up to {MAX_GRADE:,}.")


class LabelledSet(msgspec.Struct, frozen=True, kw_only=True):
    """The queries of a folder.

    Attributes:
        name: The name of the set.
        folder: The folder, which also has the corpus.
        queries: The queries that have an answer; empty only in a judged set.
        judged: The queries with judged items, even if none is good; empty if it is no judged set.
        problems: Why queries were left out, and warnings about the others.
    """

    name: str
    folder: Path
    queries: Sequence[LabelledQuery]
    judged: Sequence[LabelledQuery] = ()
    problems: Sequence[str] = ()


def read_sets(given: Iterable[Path]) -> list[LabelledSet]:
    """Read labelled sets, each only once; the path of a file means its folder.

    A set is named after its folder, or by its path if that name is taken.

    Raises:
        UsageError: A file is missing or a line of it is wrong.
    """
    # Unlike ``Path.is_file``, it raises nothing.
    folders = [path.parent if os.path.isfile(path) else path for path in given]  # noqa: PTH113
    sets: dict[str, LabelledSet] = {}
    for place, folder in {folder.resolve(): folder for folder in folders}.items():
        name = str(folder) if place.name in sets else place.name
        sets[name] = _read_set(name, folder)
    return list(sets.values())


def _read_set(name: str, folder: Path) -> LabelledSet:
    """Read a set.

    The folder holds ``corpus.jsonl``, ``queries.jsonl`` (``id, text, tags?``) and ``qrels.jsonl``
    (``query_id, item_id, grade``). The folder of a judged set also holds ``judgements.jsonl``, with
    the same fields as ``qrels.jsonl`` and the grades of all judged items.
    """
    for file in (CORPUS, QUERIES, RIGHT):
        if not os.path.isfile(folder / file):  # noqa: PTH113 - as above
            raise UsageError(
                f"{folder} has no {file}; a labelled set is a folder with {CORPUS}, {QUERIES} and "
                f"{RIGHT}."
            )
    queries, too_long = _queries(folder / QUERIES)
    judgements = folder / JUDGEMENTS
    graded = _grades(judgements) if judgements.is_file() else {}
    right = _grades(folder / RIGHT)
    judged, answered = _graded(queries, graded, 0), _graded(queries, right, 1)
    if not answered and not judged:
        raise UsageError(f"No query of {folder / QUERIES} has an answer in {RIGHT}.")
    problems = []
    if proposed := sum(PROPOSED in query.tags for query in queries):
        problems.append(
            f"Proposed answers that were not checked: {proposed:,}, for the queries with the tag "
            f"`{PROPOSED}`. Until they are checked, the figures are too good."
        )
    known = {query.id for query in (*queries, *too_long)}
    if unknown := len({*graded, *right} - known):
        problems.append(f"Ids with grades but without a query in {QUERIES}: {unknown:,}.")
    if unlabelled := len(
        {query.id for query in queries} - {one.id for one in (*answered, *judged)}
    ):
        problems.append(f"Queries without a right answer, which are left out: {unlabelled:,}.")
    problems += [
        f"The query {query.id} has {len(query.text):,} characters and is left out; "
        f"{MAX_QUERY_LENGTH:,} is the limit."
        for query in too_long
    ]
    return LabelledSet(name=name, folder=folder, queries=answered, judged=judged, problems=problems)


def _queries(file: Path) -> tuple[list[LabelledQuery], list[LabelledQuery]]:
    """The queries of a file, and separately those that are too long. Ids must be unique."""
    first: dict[str, int] = {}
    queries: list[LabelledQuery] = []
    too_long: list[LabelledQuery] = []
    for number, query in _read(file, LabelledQuery):
        if (line := first.setdefault(query.id, number)) != number:
            raise UsageError(
                f"{file}:{number}: the id {query.id} is already used in line {line}; give each "
                "query its own id."
            )
        (too_long if len(query.text) > MAX_QUERY_LENGTH else queries).append(query)
    return queries, too_long


def _grades(file: Path) -> dict[str, dict[str, int]]:
    """The grades in a file, by query and item; if a pair has several, the last one counts."""
    grades: dict[str, dict[str, int]] = {}
    for _, judgement in _read(file, _Judgement):
        grades.setdefault(judgement.query_id, {})[judgement.item_id] = int(judgement.grade)
    return grades


def _graded(
    queries: Iterable[LabelledQuery], grades: Mapping[str, Mapping[str, int]], least: int
) -> list[LabelledQuery]:
    """The queries with a grade of at least ``least``, with those grades."""
    graded = []
    for query in queries:
        given = grades.get(query.id, {})
        if kept := {item: grade for item, grade in given.items() if grade >= least}:
            graded.append(msgspec.structs.replace(query, grades=kept))
    return graded


def missing(queries: Iterable[LabelledQuery], items: Iterable[str]) -> list[str]:
    """The ids of right answers that are not among these items, and so cannot be found."""
    return sorted({item for query in queries for item in query.grades}.difference(items))


def evenly(things: Sequence[T], limit: int) -> Sequence[T]:
    """Up to ``limit`` of some things, evenly spread over them; 0 means all."""
    if not 0 < limit < len(things):
        return things
    return [things[place * len(things) // limit] for place in range(limit)]


def _read(path: Path, kind: type[T]) -> list[tuple[int, T]]:
    """The rows of a file, each with its line number."""
    try:
        lines = path.read_bytes().removeprefix(BOM_UTF8).splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                rows.append((number, msgspec.json.decode(line, type=kind)))
            except (
                msgspec.MsgspecError,
                UnicodeDecodeError,
                RecursionError,
                UsageError,
            ) as error:
                raise UsageError(f"{path}:{number}: {str(error).rstrip('.')}.") from error
    return rows
