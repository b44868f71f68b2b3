"""Checks that no query and no right answer of the measures is in the training data.

    python -m training.overlap ../shared/data/retrieval

It compares their queries with ours and with our triggers, and looks for them inside of descriptions
that are trained on. Exact means equal letters and digits; near means a similarity of at least 90
of 100 (rapidfuzz, sorted words) between two queries of three words or more. A right answer is an
item with the same name and description. A set that is not there is an error; `written` is training
data, and is not compared.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz import fuzz, process

from training.arguments import paths, refuse
from training.dataset import SET, Item, Part, items, queries
from training.triggers import trigger

NEAR = 90.0
MIN_WORDS = 3
MIN_INSIDE = 40  # characters; shorter ones are usual phrases
SAME_START = 200  # letters of a description; the sets cut it at different lengths
MEASURES = (
    "azure_mcp",
    "judged",
    "livemcp_steps",
    "metatool_single",
    "sealtools",
    "skill_usewhen",
    "typo",
)
DISCLOSED = frozenset({"judged"})  # its right answers are trained on; the datasheet says so
CHUNK = 500


def main() -> int:
    """Print what overlaps; the exit code is 1 if anything does."""
    (measures,) = paths(__doc__, measures="the folder of the labelled sets")
    lacking = [
        name for name in MEASURES if not all((measures / name / file).is_file() for file in SET)
    ]
    if lacking:
        refuse(f"{measures} lacks the sets {', '.join(lacking)}; nothing was compared.")
    trained = [item for item in items().values() if item.part is Part.TRAIN]
    triggers = [its for item in trained if (its := trigger(item))]
    clauses = [text for its in triggers for text in (its.clause, *its.elements)]
    ours = [normal(text) for text in (*(query.text for query in queries()), *clauses)]
    exact = frozenset(ours)
    long = [text for text in ours if len(text.split()) >= MIN_WORDS]
    descriptions = "\n".join(normal(item.description) for item in trained)
    found = 0
    for name in MEASURES:
        folder = measures / name
        theirs = [normal(row["text"]) for row in _rows(folder / "queries.jsonl")]
        same = [text for text in theirs if text in exact]
        alike = near([text for text in theirs if len(text.split()) >= MIN_WORDS], long)
        inside = [text for text in theirs if len(text) >= MIN_INSIDE and text in descriptions]
        right = right_answers(folder, trained)
        print(
            f"{name}: {len(theirs)} queries, {len(same)} exact, {len(alike)} near, "
            f"{len(inside)} inside of descriptions; {len(right)} right answers"
        )
        for text, other in alike:
            print(f"  {text} ~ {other}")
        for text in inside:
            print(f"  … {text} …")
        if name in DISCLOSED:
            right = []
        for item in right:
            print(f"  right: {item}")
        found += len(same) + len(alike) + len(inside) + len(right)
    return 1 if found else 0


def right_answers(folder: Path, trained: Iterable[Item]) -> list[str]:
    """The ids of the items that are right answers to queries of a set."""
    answers = {row["item_id"] for row in _rows(folder / "qrels.jsonl") if row.get("grade", 1) > 0}
    corpus = [row for row in _rows(folder / "corpus.jsonl") if row["id"] in answers]
    theirs = {_identity(row["name"], row["description"]) for row in corpus}
    return [item.id for item in trained if _identity(item.name, item.description) in theirs]


def _identity(name: str, description: str) -> tuple[str, str]:
    return normal(name), normal(description)[:SAME_START]


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def near(theirs: Sequence[str], ours: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of nearly equal texts."""
    pairs = []
    for start in range(0, len(theirs), CHUNK):
        chunk = theirs[start : start + CHUNK]
        scores = process.cdist(
            chunk, ours, scorer=fuzz.token_sort_ratio, score_cutoff=NEAR, dtype=np.uint8, workers=-1
        )
        pairs += [(chunk[row], ours[column]) for row, column in zip(*scores.nonzero(), strict=True)]
    return pairs


def normal(text: str) -> str:
    """A text in lower case, without punctuation."""
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


if __name__ == "__main__":
    sys.exit(main())
