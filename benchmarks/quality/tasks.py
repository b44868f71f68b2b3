"""Tasks that need several tools."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.quality.product import Product, rows
from benchmarks.quality.report import Part, Target, ranged, table

FIGURE = "recall@5"
SEVERAL, JOINED = "sealtools", "livemcp_steps"
# The figures of the first release, at commit e8e8fda, which searches a long task as one query.
FIRST_RELEASE = {"sealtools": 72.7, "livemcp_steps": 75.5}

TEXT = """These queries need at least two tools, and are searched as one query without a threshold:
those of `sealtools`, and the joined steps of each task of `livemcp_steps`. They are compared with
the first release, which searched a long query as a whole."""


def part(product: Product, sets: dict[str, Path]) -> Part:
    """Measure the recall of each kind of task.

    Args:
        product: The command line.
        sets: The labelled sets by name.
    """
    made = {SEVERAL: _several, JOINED: _joined}
    folders = {
        name: product.labelled(f"tasks of {name}", *make(sets[name]))
        for name, make in made.items()
        if name in sets
    }
    measured = product.ask("eval", *folders.values(), "--worst", "0") if folders else []
    shown, targets = [], []
    for name, one in zip(folders, measured, strict=True):
        figure, first = one["figures"][FIGURE], FIRST_RELEASE[name]
        shown.append((name, f"{one['queries']:,}", ranged(figure), f"{first:.1f}"))
        targets.append(
            Target(
                what=f"Tasks: {FIGURE} of {name}, more than the first release",
                asked=first + 0.1,
                measured=100 * figure["mean"],
            )
        )
    head = ("Tasks of", "queries", FIGURE, "first release")
    return Part(title="Tasks", text=f"{TEXT}\n\n{table(head, shown)}", targets=targets)


_Set = tuple[list[dict[str, Any]], list[dict[str, Any]], list[tuple[str, str]]]


def _several(folder: Path) -> _Set:
    """The corpus, the queries with at least two right items, and those items."""
    right = _right(folder)
    queries = [row for row in rows(folder / "queries.jsonl") if len(right[row["id"]]) > 1]
    pairs = [(row["id"], item) for row in queries for item in right[row["id"]]]
    return rows(folder / "corpus.jsonl"), queries, pairs


def _joined(folder: Path) -> _Set:
    """The corpus, each task with at least two right items as one query, and those items."""
    right = _right(folder)
    tasks: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows(folder / "queries.jsonl"):
        tasks[row["id"].rpartition("-")[0]].append(row)
    queries, pairs = [], []
    for task, steps in tasks.items():
        items = dict.fromkeys(item for step in steps for item in right[step["id"]])
        if len(items) > 1:
            text = " ".join(f"{step['text'].strip().rstrip('.')}." for step in steps)
            queries.append({"id": task, "text": text})
            pairs += [(task, item) for item in items]
    return rows(folder / "corpus.jsonl"), queries, pairs


def _right(folder: Path) -> defaultdict[str, list[str]]:
    right: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows(folder / "qrels.jsonl"):
        if row.get("grade", 1) > 0:
            right[row["query_id"]].append(row["item_id"])
    return right
