"""Print a profile of every column of a CSV file: ``profile.py FILE``."""

import csv
import sys
from collections import Counter
from pathlib import Path


def profile(path: Path) -> dict[str, dict[str, object]]:
    """Profile each column of a CSV file with a header."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    columns = rows[0].keys() if rows else ()
    return {column: _describe([row[column] or "" for row in rows]) for column in columns}


def _describe(values: list[str]) -> dict[str, object]:
    present = Counter(value.strip() for value in values if value.strip())
    numbers = [float(value) for value in present if _is_number(value)]
    return {
        "missing": len(values) - present.total(),
        "distinct": len(present),
        "commonest": present.most_common(1)[0][0] if present else None,
        "least": min(numbers, default=None),
        "greatest": max(numbers, default=None),
    }


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    for name, facts in profile(Path(sys.argv[1])).items():
        print(name, *(f"{key}={value}" for key, value in facts.items()), sep="\t")
