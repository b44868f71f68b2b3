"""Checks that no query of the measures is in the training data, as it is or nearly.

    python -m training.overlap ../shared/data/retrieval

Exact means equal letters and digits; near means a similarity of at least 90 of 100 (rapidfuzz,
sorted words) between two queries of three words or more. The set `written` is training data.
"""

import json
import re
import sys
from collections.abc import Sequence

import numpy as np
from rapidfuzz import fuzz, process

from training.arguments import paths
from training.dataset import queries

NEAR = 90.0
MIN_WORDS = 3
TRAINED_ON = frozenset({"written"})
CHUNK = 500


def main() -> int:
    """Print what overlaps; the exit code is 1 if anything does."""
    (measures,) = paths(__doc__, measures="the folder of the labelled sets")
    ours = [normal(query.text) for query in queries()]
    exact = frozenset(ours)
    long = [text for text in ours if len(text.split()) >= MIN_WORDS]
    found = 0
    for folder in sorted(measures.iterdir()):
        file = folder / "queries.jsonl"
        if folder.name in TRAINED_ON or not file.is_file():
            continue
        theirs = [normal(json.loads(line)["text"]) for line in file.open(encoding="utf-8")]
        same = [text for text in theirs if text in exact]
        alike = near([text for text in theirs if len(text.split()) >= MIN_WORDS], long)
        print(f"{folder.name}: {len(theirs)} queries, {len(same)} exact, {len(alike)} near")
        for text, other in alike:
            print(f"  {text} ~ {other}")
        found += len(same) + len(alike)
    return 1 if found else 0


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
