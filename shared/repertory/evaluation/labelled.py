"""A labelled set: queries, and which items answer each."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from repertory.errors import UsageError

CORPUS, QUERIES, JUDGEMENTS = "corpus.jsonl", "queries.jsonl", "qrels.jsonl"

T = TypeVar("T")


class LabelledQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query and the grade of every item that answers it; other items have grade 0."""

    id: str
    text: str
    tags: tuple[str, ...] = ()
    grades: dict[str, float] = {}


class _Query(msgspec.Struct, frozen=True):
    id: str
    text: str
    tags: tuple[str, ...] = ()


class _Judgement(msgspec.Struct, frozen=True):
    query_id: str
    item_id: str
    grade: float = 1.0


def by_name(given: Iterable[Path]) -> dict[str, Path]:
    """The folders of labelled sets by their names; a file in one stands for it.

    A name that is taken gives way to the whole path.
    """
    folders: dict[str, Path] = {}
    for path in given:
        folder = path.parent if path.is_file() else path
        name = folder.resolve().name
        folders[str(folder) if name in folders else name] = folder
    return folders


def read_queries(folder: Path) -> list[LabelledQuery]:
    """Read the queries of a labelled set that have an answer.

    Args:
        folder: Holds ``queries.jsonl`` (``id, text, tags?``) and ``qrels.jsonl``
            (``query_id, item_id, grade``).

    Raises:
        UsageError: A file is missing or a line of it is wrong.
    """
    grades: dict[str, dict[str, float]] = {}
    for judgement in _read(folder / JUDGEMENTS, _Judgement):
        if judgement.grade > 0:
            grades.setdefault(judgement.query_id, {})[judgement.item_id] = judgement.grade
    queries = [
        LabelledQuery(id=query.id, text=query.text, tags=query.tags, grades=grades[query.id])
        for query in _read(folder / QUERIES, _Query)
        if query.id in grades
    ]
    if not queries:
        raise UsageError(f"No query of {folder / QUERIES} has an answer in {JUDGEMENTS}.")
    return queries


def evenly(things: Sequence[T], most: int) -> Sequence[T]:
    """At most so many of some things, evenly spread over them; 0 takes all."""
    if not 0 < most < len(things):
        return things
    return [things[place * len(things) // most] for place in range(most)]


def _read(path: Path, kind: type[T]) -> list[T]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}; a labelled set is a folder with {CORPUS}, "
            f"{QUERIES} and {JUDGEMENTS}."
        ) from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                rows.append(msgspec.json.decode(line, type=kind))
            except msgspec.MsgspecError as error:
                raise UsageError(f"{path}:{number}: {error}.") from error
    return rows
