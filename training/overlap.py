"""Checks that no query and no right answer of the test sets is in the training data.

    python -m training.overlap ../shared/data/retrieval

It compares their queries with ours and with our triggers, and looks for them inside descriptions
used in training. Exact means equal letters and digits, ignoring spaces. Near means a similarity of
at least 90 of 100 (rapidfuzz, sorted words) between two queries of three words or more; or two or
more equal words, ignoring those that any query may have; or three equal words with one added,
removed or replaced. Synonyms, and one changed word of three, are not found. A right answer is an
item with the same name and description. A missing set is an error; `written` is training data and
is not compared.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz import fuzz, process

from repertory.index.keywords.tokens import term_set, terms
from training.arguments import paths, refuse
from training.dataset import SET, Item, Part, items, queries
from training.triggers import trigger

NEAR = 90.0
MIN_WORDS = 3
MIN_INSIDE = 40  # characters; shorter queries are common phrases
SAME_START = 200  # compared letters of a description; the sets cut descriptions differently
MEASURES = (
    "azure_mcp",
    "judged",
    "livemcp_steps",
    "metatool_single",
    "sealtools",
    "skill_usewhen",
    "typo",
)
DISCLOSED = frozenset({"judged"})  # right answers are in the training data; see the datasheet
CHUNK = 500
MIN_EQUAL = 2  # minimum number of words of texts with the same words
MIN_SHARED = 3  # minimum number of shared words if one word differs
# Terms that say nothing about a query's subject.
SEEING = term_set(
    "content contents detail details display find give information just list look now overview "
    "read retrieve see show tell view"
)


def main() -> int:
    """Print overlaps; the exit code is 1 if there are any."""
    (measures,) = paths(__doc__, measures="the folder of the labelled sets")
    lacking = [
        name for name in MEASURES if not all((measures / name / file).is_file() for file in SET)
    ]
    if lacking:
        refuse(f"{measures} lacks the sets {', '.join(lacking)}; nothing was compared.")
    trained = [item for item in items().values() if item.part is Part.TRAIN]
    triggers = [its for item in trained if (its := trigger(item))]
    clauses = [text for its in triggers for text in (its.clause, *its.elements)]
    ours = Texts([normal(text) for text in (*(query.text for query in queries()), *clauses)])
    descriptions = "\n".join(normal(item.description) for item in trained)
    found = 0
    for name in MEASURES:
        folder = measures / name
        theirs = [normal(row["text"]) for row in _rows(folder / "queries.jsonl")]
        same, alike = ours.same(theirs), ours.near(theirs)
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
    """The ids of the training items that are right answers to queries of a set."""
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


class Texts:
    """The texts that the encoder is trained on: queries and triggers, normalised by ``normal``."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._joined = {joined(text) for text in texts}
        self._long = [text for text in texts if len(text.split()) >= MIN_WORDS]
        self._about: defaultdict[frozenset[str], set[str]] = defaultdict(set)
        for text in texts:
            for about in _subjects(text):
                self._about[about].add(text)

    def same(self, theirs: Iterable[str]) -> list[str]:
        """The given texts that are equal to one of these."""
        return [text for text in theirs if joined(text) in self._joined]

    def near(self, theirs: Sequence[str]) -> list[tuple[str, str]]:
        """The pairs of nearly equal texts, the given text first."""
        return sorted({*self._by_letters(theirs), *self._by_words(theirs)})

    def _by_letters(self, theirs: Sequence[str]) -> Iterator[tuple[str, str]]:
        long = [text for text in theirs if len(text.split()) >= MIN_WORDS]
        for start in range(0, len(long), CHUNK):
            chunk = long[start : start + CHUNK]
            scores = process.cdist(
                chunk,
                self._long,
                scorer=fuzz.token_sort_ratio,
                score_cutoff=NEAR,
                dtype=np.uint8,
                workers=-1,
            )
            for row, column in zip(*scores.nonzero(), strict=True):
                yield chunk[row], self._long[column]

    def _by_words(self, theirs: Iterable[str]) -> Iterator[tuple[str, str]]:
        for text in theirs:
            for about in _subjects(text):
                for other in self._about.get(about, ()):
                    yield text, other


def _subjects(text: str) -> list[frozenset[str]]:
    """The set of a text's terms, and the sets with one term removed, if large enough."""
    about = frozenset(terms(text)) - SEEING
    whole = [about] if len(about) >= MIN_EQUAL else []
    return whole + [about - {term} for term in about if len(about) > MIN_SHARED]


def normal(text: str) -> str:
    """A text in lower case, without punctuation."""
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


def joined(text: str) -> str:
    """A text without its spaces."""
    return text.replace(" ", "")


if __name__ == "__main__":
    sys.exit(main())
