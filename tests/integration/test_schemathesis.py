"""The HTTP API matches its OpenAPI document for generated requests."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.builders import write_skill
from tests.support.command_line import TOOLS
from tests.support.listening import served
from tests.support.query_service import indexed_server

# A long address may also be refused with 414. Functions refuse some arguments that their schemas
# cannot exclude, such as a blank query or a missing file.
SETTINGS = """
checks.negative_data_rejection.expected-statuses = [400, 404, 405, 406, 413, 414, 415, 422]

[[operations]]
include-path-regex = "^/v1/functions/"
checks.positive_data_acceptance.enabled = false
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A server with a skill, some tools and a document."""
    project = tmp_path / "project"
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    (project / "tools").mkdir()
    (project / "tools" / "files.json").write_text(json.dumps(TOOLS))
    (project / "README.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    with (
        indexed_server(project, tmp_path / "home") as running,
        served(running, requests_per_minute=1_000_000, allow_calls=True) as url,
    ):
        yield url


@pytest.mark.timeout(360)
def test_the_api_matches_its_description(url: str, tmp_path: Path) -> None:
    """No request causes a server error or an undescribed answer, and no invalid one is accepted."""
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    options = {"--phases": "examples,coverage,fuzzing", "--seed": "7", "--max-examples": "6"}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--no-color", "run"),
            *(f"{name}={value}" for name, value in options.items()),
            f"{url}/openapi.json",
        ],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
