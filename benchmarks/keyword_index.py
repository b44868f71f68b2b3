"""The cost of building, searching, changing and storing the keyword index of a large catalogue.

python -m benchmarks.keyword_index 100000

It prints processor times, and the memory that the index adds to the process. The items are
synthetic; see ``synthetic.py``.
"""

import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from benchmarks.processes import usage
from benchmarks.synthetic import items, questions
from repertory.catalogue.item import Item
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import packing, unpack
from repertory.search.keyword_arm import search_keywords
from repertory.search.query import Query
from repertory.system.memory import return_memory_early, trim

SAVES = 50
QUERIES = 1_000
ANNOUNCED = 500  # items added at once while an index is built

T = TypeVar("T")


def main(number: int) -> None:
    """Measure an index of ``number`` items."""
    return_memory_early()
    with tempfile.TemporaryDirectory(prefix="repertory-bench-") as name:
        _measure(number, Path(name))


def _measure(number: int, folder: Path) -> None:
    made = items(number + SAVES)
    first = KeywordIndex.empty().updated((), islice(made, 1))  # also creates the vocabulary
    before = usage(os.getpid()).memory
    index, seconds = _built(first, made, number, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    trim()
    print(
        f"build: {seconds:.1f} s, {usage(os.getpid()).memory - before:.0f} MB, "
        f"{peak - before:.0f} at the peak, in {len(index.parts)} segments"
    )
    searches = [
        _timed(partial(search_keywords, Query(text=text), index))[1] for text in questions(QUERIES)
    ]
    print(
        f"the words of a query: {_shown(searches)}; "
        f"then {usage(os.getpid()).memory - before:.0f} MB"
    )
    updates, preparations = [], []
    for item in islice(made, SAVES):
        index, spent = _timed(partial(index.updated, (), [item]))
        updates.append(spent)
        preparations.append(_timed(partial(index.prepare, folder))[1])
    print(f"one save: {_shown(updates)}")
    print(f"preparing the index after it: {_shown(preparations)}")
    head, packs = packing(index, 1)
    packed, spent = _timed(lambda: {name: pack() for name, pack in packs.items()})
    sizes = [len(one) / 1e6 for one in packed.values()]
    print(f"snapshot: {sum(sizes):.0f} MB in {len(sizes)} pieces, packed in {spent:.2f} s")
    _, spent = _timed(lambda: unpack(head, packed))
    print(f"loading it: {spent:.2f} s")


def _built(
    index: KeywordIndex, made: Iterator[Item], number: int, folder: Path
) -> tuple[KeywordIndex, float]:
    total = 0.0
    while len(index) < number:
        announced = [*islice(made, min(ANNOUNCED, number - len(index)))]
        index, spent = _timed(partial(index.updated, (), announced))
        total += spent
    return index, total + _timed(partial(index.prepare, folder))[1]


def _shown(spent: list[float]) -> str:
    """The median and the maximum, which is usually the first call or a merge of segments."""
    return f"{statistics.median(spent) * 1e3:.1f} ms, {max(spent) * 1e3:.0f} at most"


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    before = time.process_time()
    result = work()
    return result, time.process_time() - before


if __name__ == "__main__":
    main(int(sys.argv[1]))
