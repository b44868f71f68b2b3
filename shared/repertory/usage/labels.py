"""Queries that found nothing, as a labelled set for ``repertory eval``."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from repertory.catalogue.item import Item
from repertory.errors import UsageError
from repertory.usage.events import Event
from repertory.usage.outcomes import Outcome, outcomes
from repertory.usage.report import followed
from repertory.usage.wire import UnansweredQuery

USED, PROPOSED = "used", "proposed"  # tags of queries: the origin of the right answer
CORPUS, QUERIES, RIGHT = FILES = ("corpus.jsonl", "queries.jsonl", "qrels.jsonl")


class LabelCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of written queries, by the origin of their right answers."""

    used: int
    proposed: int


def unanswered(events: Iterable[Event], known: set[str]) -> list[UnansweredQuery]:
    """The queries that found nothing, most frequent first; hashed ones are left out.

    Args:
        events: The recorded events.
        known: The ids of the current items.
    """
    by_query: defaultdict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes(events):
        if not one.search.hits and not one.search.is_degraded and one.search.query:
            by_query[one.search.digest].append(one)
    return [
        UnansweredQuery(
            query=group[-1].search.query,
            searches=len(group),
            used=followed(group, known),
            nearest="",
        )
        for _, group in sorted(by_query.items(), key=lambda one: (-len(one[1]), one[0]))
    ]


def write_set(
    folder: Path, queries: Sequence[UnansweredQuery], items: Iterable[Item]
) -> LabelCounts:
    """Write a labelled set; see ``repertory_eval.labelled``.

    The right answer to a query is the item that its callers used soon afterwards, else the nearest
    item as a proposal, with the tag ``proposed``. Queries without either are left out.

    Args:
        folder: A missing or empty folder.
        queries: The queries.
        items: The items of the catalogue.

    Raises:
        UsageError: The folder has files or cannot be written, or no query has an answer.
    """
    labels = [
        (f"q{number}", one, one.used[0] if one.used else one.nearest)
        for number, one in enumerate(queries, start=1)
        if one.used or one.nearest
    ]
    if not labels:
        raise UsageError("No query without results has an item that could be its answer.")
    rows: dict[str, list[dict[str, Any]]] = {
        CORPUS: [_row(item) for item in items],
        QUERIES: [
            {"id": name, "text": one.query, "tags": [USED if one.used else PROPOSED]}
            for name, one, _ in labels
        ],
        RIGHT: [{"query_id": name, "item_id": right, "grade": 1} for name, _, right in labels],
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{folder} has files already; name another folder, or empty it.")
        for name in FILES:
            lines = [msgspec.json.encode(row) + b"\n" for row in rows[name]]
            (folder / name).write_bytes(b"".join(lines))
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}.") from error
    used = sum(bool(one.used) for _, one, _ in labels)
    return LabelCounts(used=used, proposed=len(labels) - used)


def _row(item: Item) -> dict[str, Any]:
    """An item as a line of a corpus."""
    row = {
        "id": item.id,
        "kind": item.kind.value,
        "name": item.name,
        "server": item.server,
        "description": item.description,
        "schema": item.input_schema,
        "body": item.body,
    }
    return {name: value for name, value in row.items() if value}
