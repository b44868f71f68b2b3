"""Indexing again with nothing changed, against the first run."""

from pathlib import Path

from repertory.indexing.report import Report

from benchmarks.measure import Figure, seconds
from benchmarks.texts import write_tools
from repertory.one_shot import Repertory
from repertory.settings import load

ITEMS = 10_000
MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def open_project(project: Path, data: Path) -> Repertory:
    """The repertory of a folder of tool lists."""
    return Repertory(load({"data_dir": str(data), "model": MODEL}, project, {}), project)


def prepare(folder: Path) -> None:
    """Write a project of 10,000 tools."""
    write_tools(folder / "project" / "tools", ITEMS)


def index(folder: Path) -> Report:
    """Index that project, beside it."""
    with open_project(folder / "project", folder / "data") as repertory:
        return repertory.index(lambda *_: None)


def run(folder: Path) -> list[Figure]:
    """Index 10,000 tools, then again; the project and its index stay for the other benchmarks."""
    prepare(folder)
    reports: list[Report] = []
    first, *again = (seconds(lambda: reports.append(index(folder))) for _ in range(4))
    assert reports[0].items == ITEMS
    assert all(report.embedded == 0 for report in reports[1:])
    return [
        Figure(
            name=f"index {ITEMS:,} items again, nothing changed",
            ours=min(again),
            other=first,
            against="the first run",
            unit="s",
            target=0.02,
        )
    ]
