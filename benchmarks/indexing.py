"""`repertory index` without changes, compared with its first run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.measure import Figure, seconds
from benchmarks.texts import write_tools
from repertory.settings import PROJECT_FILE

ITEMS = 10_000
MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def prepare(folder: Path) -> None:
    """Write a project of 10,000 tools.

    The project file separates it from any enclosing repository.
    """
    write_tools(folder / "project" / "tools", ITEMS)
    (folder / "project" / PROJECT_FILE).touch()


def index(folder: Path, project: str = "project") -> dict[str, Any]:
    """Index a project, with the data directory next to it, and return the printed JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "repertory_admin", "index", "--output", "json"],
        cwd=folder / project,
        env=environment(folder),
        stdout=subprocess.PIPE,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def environment(folder: Path, data: str = "data") -> dict[str, str]:
    """The environment variables of a command, with its data directory and its model."""
    return processes.environment(folder) | {
        "REPERTORY_DATA_DIR": str(folder / data),
        "REPERTORY_SEARCH_MODEL": MODEL,
    }


def run(folder: Path) -> list[Figure]:
    """Index 10,000 tools four times; other benchmarks use the project and its index."""
    prepare(folder)
    results: list[dict[str, Any]] = []
    first, *again = (seconds(lambda: results.append(index(folder))) for _ in range(4))
    assert results[0]["stats"]["items"] == ITEMS
    assert all(result["embedded"] == 0 for result in results[1:])
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
