"""The OpenAPI document of the HTTP API; ``python -m tests.support.openapi FILE`` writes it."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.query_service import RunningService


def document(folder: Path) -> dict[str, Any]:
    """The document as served for an empty folder."""
    with RunningService(folder) as running:
        found: dict[str, Any] = running.client().get("/openapi.json").json()
    return found


def as_text(found: dict[str, Any]) -> str:
    """The document in the format of the stored file."""
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        project = Path(place, "project")
        project.mkdir()
        Path(sys.argv[1]).write_text(as_text(document(project)), "utf-8")
