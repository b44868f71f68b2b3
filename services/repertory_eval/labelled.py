"""A labelled set: queries, and which items answer each."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from repertory.errors import UsageError
from repertory.search.query import MAX_QUERY_LENGTH, check_text

MAX_GRADE = 1_000  # trec_eval makes an array of this length
CORPUS, QUERIES, JUDGEMENTS = "corpus.jsonl", "queries.jsonl", "qrels.jsonl"

T = TypeVar("T")


class LabelledQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query and the grade of every item that answers it, from 1 to ``MAX_GRADE``."""

    id: str
    text: str
    tags: tuple[str, ...] = ()
    grades: dict[str, int] = {}

    def __post_init__(self) -> None:
        check_text(self.text[:MAX_QUERY_LENGTH])


class _Judgement(msgspec.Struct, frozen=True):
    query_id: str
    item_id: str
    grade: float = 1.0

    def __post_init__(self) -> None:
        if not self.grade.is_integer() or self.grade > MAX_GRADE:
            raise UsageError(f"grade must be a whole number up to {MAX_GRADE:,}.")


class LabelledSet(msgspec.Struct, frozen=True, kw_only=True):
    """The queries of a folder, and the folder, which has their corpus too.

    Attributes:
        name: Its name.
        folder: The folder.
        queries: The queries; longer texts than a search accepts are cut.
        cut: The ids of those that were cut.
    """

    name: str
    folder: Path
    queries: Sequence[LabelledQuery]
    cut: Sequence[str] = ()


def read_sets(given: Iterable[Path]) -> list[LabelledSet]:
    """Read labelled sets, each once; a path of a file means its folder.

    A set has the name of its folder, or its path where that name is taken.

    Raises:
        UsageError: A file is missing or a line of it is wrong.
    """
    folders = [path.parent if path.is_file() else path for path in given]
    sets: dict[str, LabelledSet] = {}
    for place, folder in {folder.resolve(): folder for folder in folders}.items():
        name = str(folder) if place.name in sets else place.name
        written = read_queries(folder)
        sets[name] = LabelledSet(
            name=name,
            folder=folder,
            queries=[
                msgspec.structs.replace(query, text=query.text[:MAX_QUERY_LENGTH])
                for query in written
            ],
            cut=[query.id for query in written if len(query.text) > MAX_QUERY_LENGTH],
        )
    return list(sets.values())


def read_queries(folder: Path) -> list[LabelledQuery]:
    """Read the queries of a labelled set that have an answer.

    Args:
        folder: Holds ``queries.jsonl`` (``id, text, tags?``) and ``qrels.jsonl``
            (``query_id, item_id, grade``).

    Raises:
        UsageError: A file is missing or a line of it is wrong.
    """
    for name in (CORPUS, QUERIES, JUDGEMENTS):
        if not (folder / name).is_file():
            raise UsageError(
                f"{folder} has no {name}; a labelled set is a folder with {CORPUS}, {QUERIES} and "
                f"{JUDGEMENTS}."
            )
    grades: dict[str, dict[str, int]] = {}
    for judgement in _read(folder / JUDGEMENTS, _Judgement):
        if judgement.grade > 0:
            grades.setdefault(judgement.query_id, {})[judgement.item_id] = int(judgement.grade)
    queries = [
        msgspec.structs.replace(query, grades=grades[query.id])
        for query in _read(folder / QUERIES, LabelledQuery)
        if query.id in grades
    ]
    if not queries:
        raise UsageError(f"No query of {folder / QUERIES} has an answer in {JUDGEMENTS}.")
    return queries


def missing(queries: Iterable[LabelledQuery], items: Iterable[str]) -> list[str]:
    """The ids of right answers that are not among these items, and so cannot be found."""
    return sorted({item for query in queries for item in query.grades}.difference(items))


def evenly(things: Sequence[T], limit: int) -> Sequence[T]:
    """At most ``limit`` of some things, evenly spread over them; 0 takes all."""
    if not 0 < limit < len(things):
        return things
    return [things[place * len(things) // limit] for place in range(limit)]


def _read(path: Path, kind: type[T]) -> list[T]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                rows.append(msgspec.json.decode(line, type=kind))
            except (
                msgspec.MsgspecError,
                UnicodeDecodeError,
                RecursionError,
                UsageError,
            ) as error:
                raise UsageError(f"{path}:{number}: {str(error).rstrip('.')}.") from error
    return rows
