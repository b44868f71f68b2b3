"""The time that ranking adds to a search, at the required size."""

from pathlib import Path

from benchmarks import indexing, searching
from benchmarks.quality.report import Part, Target, table

TEXT = """`make bench` also measures this: {rounds} searches in one process with {items:,} tools,
alternating with both arms of a search without ranking, and with embedding the query alone; the
figures are medians. Only this part needs an otherwise idle machine."""


def part(folder: Path) -> Part:
    """Measure the times of a search in an index in the given folder."""
    indexing.prepare(folder)
    indexing.index(folder)
    search, ranking = searching.searches(folder)
    rows = [
        ("A search", f"{search.ours:.1f}"),
        ("Embedding its query alone", f"{search.other:.1f}"),
        ("Ranking, beyond embedding and both arms", f"{ranking.ours:.1f}"),
    ]
    text = TEXT.format(rounds=searching.ROUNDS, items=indexing.ITEMS)
    return Part(
        title="Speed",
        text=f"{text}\n\n{table(('What', 'milliseconds'), rows)}",
        targets=[
            Target(
                what=f"Speed: milliseconds of ranking at {indexing.ITEMS:,} items",
                asked=searching.RANKING,
                measured=ranking.ours,
                at_least=False,
            )
        ],
    )
