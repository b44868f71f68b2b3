"""Read the lines of an audit log."""

import json
from pathlib import Path
from typing import Any

from repertory.audit import Audit
from repertory.settings import Settings


def lines_of(settings: Settings) -> list[dict[str, Any]]:
    """The lines that this process has written so far to all log files, oldest first."""
    file = Audit(settings, Path()).file
    assert file.flush()
    return read_lines(file.path.parent)


def read_lines(folder: Path) -> list[dict[str, Any]]:
    """The lines of all files of an audit log, oldest first."""
    found = (file for file in folder.glob("audit.jsonl*") if file.suffix != ".lock")
    files = sorted(found, key=_age, reverse=True)
    return [json.loads(line) for file in files for line in file.read_text("ascii").splitlines()]


def _age(file: Path) -> int:
    number = file.name.removeprefix("audit.jsonl").removeprefix(".")
    return int(number or 0)
