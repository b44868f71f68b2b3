"""Indexing again with nothing changed, against the first run."""

from pathlib import Path

from benchmarks.measure import Figure, seconds
from benchmarks.texts import write_tools
from repertory.compose import Repertory
from repertory.pipeline.report import Report
from repertory.settings import load

ITEMS = 10_000
MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def open_project(project: Path, data: Path) -> Repertory:
    """The repertory of a folder of tool lists."""
    return Repertory(load({"data_dir": str(data), "model": MODEL}, project, {}), project)


def run(folder: Path) -> list[Figure]:
    """Index 10,000 tools, then again; the project and its index stay for the other benchmarks."""
    project, data = folder / "project", folder / "data"
    write_tools(project / "tools", ITEMS)

    reports: list[Report] = []

    def index() -> None:
        with open_project(project, data) as repertory:
            reports.append(repertory.index(lambda *_: None))

    first = seconds(index)
    again = min(seconds(index) for _ in range(3))
    assert reports[0].items == ITEMS
    assert all(report.embedded == 0 for report in reports[1:])
    return [
        Figure(
            name=f"index {ITEMS:,} items again, nothing changed",
            ours=again,
            other=first,
            against="the first run",
            unit="s",
            target=0.02,
        )
    ]
