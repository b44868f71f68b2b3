"""What ranking adds to a search, at the size that is asked for."""

from pathlib import Path

from benchmarks import indexing, searching
from benchmarks.quality.report import Part, Target, table

TEXT = """`make bench` measures the same beside all other speeds: {rounds} searches in one process
of {items:,} tools, in turn with what a search does before it ranks and with embedding its query
alone; medians. This part alone wants a machine that does nothing else."""


def part(folder: Path) -> Part:
    """The times of a search; the index is kept in a folder."""
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
