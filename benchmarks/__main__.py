"""Run every benchmark, print a table, and write ``benchmarks/results.json``."""

import platform
import sys
import tempfile
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks import (
    engines,
    footprint,
    freshness,
    indexing,
    project_search,
    searching,
    serving,
    starting,
    team,
    tokens,
    visibility,
)
from benchmarks.measure import Figure

# Others use the project and the index that the first benchmark leaves in the folder.
BENCHMARKS = (
    indexing,
    searching,
    starting,
    footprint,
    serving,
    team,
    freshness,
    project_search,
    tokens,
    visibility,
)
RESULTS = Path(__file__).with_name("results.json")


def main() -> int:
    """Run all benchmarks; the exit code is 1 if a target was missed."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="repertory-bench-") as name:
        folder = Path(name)
        for benchmark in BENCHMARKS:
            print(f"running {benchmark.__name__} …", file=sys.stderr)
            figures += benchmark.run(folder)
        print("running benchmarks.engines …", file=sys.stderr)
        figures += engines.run(folder / "data")
    _show(figures)
    rows = [{**msgspec.to_builtins(figure), "ratio": figure.ratio} for figure in figures]
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    written = msgspec.json.encode({"machine": machine, "figures": rows})
    RESULTS.write_bytes(msgspec.json.format(written))
    return 0 if all(figure.reached for figure in figures) else 1


def _show(figures: list[Figure]) -> None:
    table = Table("what", "ours", "against", "its", "ratio", "target", "")
    for figure in figures:
        bound = "≥" if figure.at_least else "≤"
        table.add_row(
            figure.name,
            f"{figure.ours:.3g} {figure.unit}",
            figure.against,
            f"{figure.other:.3g} {figure.unit}",
            f"{figure.ratio:.3f}",
            f"{bound} {figure.target}",
            "reached" if figure.reached else "missed",
        )
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    sys.exit(main())
