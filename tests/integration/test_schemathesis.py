"""The HTTP API against its own description: whatever fits it is answered, all else is refused."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import TOOLS
from tests.support.listening import served
from tests.support.query_service import RunningService, skill

# An address may also be refused for its length. Functions say in their contracts' words what no
# schema of theirs may say, such as that a query is blank or that a file is not there.
SETTINGS = """
checks.negative_data_rejection.expected-statuses = [400, 404, 405, 406, 413, 414, 415, 422]

[[operations]]
include-path-regex = "^/functions/"
checks.positive_data_acceptance.enabled = false
"""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of a skill, some tools and a document."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    skill(project, "key-rotation", "Rotate API keys without downtime")
    (project / "tools").mkdir()
    (project / "tools" / "files.json").write_text(json.dumps(TOOLS))
    (project / "README.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    with RunningService(project) as running:
        running.look()
        with served(running, requests_per_minute=1_000_000, allow_calls=True) as url:
            yield url


def test_the_api_is_what_it_says_it_is(url: str, tmp_path: Path) -> None:
    """No failure of ours, no answer that was not described, no wrong request that is taken."""
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    options = {"--phases": "examples,coverage,fuzzing", "--seed": "7", "--max-examples": "8"}
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
