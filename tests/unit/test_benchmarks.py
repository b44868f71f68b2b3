"""The synthetic catalogues of the benchmarks, and the table of their results."""

import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import sizing_table, synthetic
from benchmarks.indexing import environment
from benchmarks.processes import end
from repertory.catalogue.item import Kind
from repertory.embedding.models import Model
from repertory.index.cache import SqliteVectorCache
from repertory.indexing.scan import scan_source
from repertory.project.workspace import Workspace
from repertory.settings import load
from tests.support.builders import write

ITEMS = 400
MODEL = Model(id="m", slug="m", dimension=8, max_tokens=8)


def test_a_synthetic_catalogue_has_the_statistics_of_real_ones(tmp_path: Path) -> None:
    """All items are read, each text has a vector, and generation is deterministic."""
    project = tmp_path / "project"
    synthetic.write_items(project, ITEMS)
    workspace = Workspace(load({"data_dir": str(tmp_path / "data")}, project, {}), project)
    scans = [scan_source(source).scan for source in workspace.catalogue().sources]
    items = [item for scan in scans if scan for item in scan.items]
    assert len({item.id for item in items}) == ITEMS
    tools = [item for item in items if item.kind is Kind.TOOL]
    assert len(tools) == ITEMS * 9 // 10
    assert 20 < statistics.median(len(tool.description.split()) for tool in tools) < 40
    words = [word for tool in tools for word in tool.description.lower().split()]
    assert 0.1 < len({*words}) / len(words) < 0.5
    with_vectors = SqliteVectorCache(tmp_path / "vectors", MODEL.dimension)
    stored = synthetic.store_vectors(workspace, MODEL, with_vectors)
    assert stored >= ITEMS
    assert with_vectors.count() == len({view.text for item in items for view in item.views()})
    with_vectors.close()
    again = tmp_path / "again"
    synthetic.write_items(again, ITEMS)
    files = sorted(path.relative_to(project) for path in project.rglob("*.*"))
    assert all((project / file).read_bytes() == (again / file).read_bytes() for file in files)


def test_generated_vectors_are_unit_vectors_that_depend_on_keys() -> None:
    """Equal keys have equal vectors; different keys have different vectors."""
    made = synthetic.vectors([b"one", b"two", b"one"], 32)
    assert np.allclose(np.linalg.norm(made, axis=1), 1)
    assert np.array_equal(made[0], made[2])
    assert not np.allclose(made[0], made[1])


def test_the_sizing_table_matches_the_results() -> None:
    """The table is generated, not edited by hand."""
    document = sizing_table.DOCUMENT.read_text("utf-8")
    assert sizing_table.with_table(document, sizing_table.read()) == document


def test_the_catalogue_of_the_ranking_report_is_indexed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sources lie outside its folder, so the report must trust it first."""
    from benchmarks.quality.__main__ import Measured  # noqa: PLC0415 - imports scikit-learn
    from benchmarks.quality.encoder import MODEL as ENCODER  # noqa: PLC0415 - as above
    from benchmarks.quality.product import Product  # noqa: PLC0415 - as above

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    skill = tmp_path / "data" / "skills" / "deploy" / "SKILL.md"
    write(skill, "---\nname: deploy\ndescription: Puts a release online.\n---\n")
    (tmp_path / "data" / "tool_schemas").mkdir()
    product = Product(tmp_path / "cache", ENCODER)
    with product.opened(Measured(product, tmp_path / "data", 0).project) as repertory:
        assert [entry.id for entry in repertory.entries()] == ["skills/deploy"]


def test_a_measured_command_ignores_the_users_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither variables nor a file may set anything; the system's variables stay."""
    monkeypatch.setenv("REPERTORY_SEARCH_ALPHA", "0")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/home/someone/.config")
    variables = environment(tmp_path)
    own = {name for name in variables if name.startswith("REPERTORY_")}
    assert own == {"REPERTORY_DATA_DIR", "REPERTORY_SEARCH_MODEL"}
    assert variables["XDG_CONFIG_HOME"].startswith(str(tmp_path))
    assert variables["PATH"] == os.environ["PATH"]


def test_a_server_that_does_not_end_is_killed() -> None:
    """It would keep its port and memory, and distort the next measurements."""
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(); signal.pause()"
    process = subprocess.Popen([sys.executable, "-uc", deaf], stdout=subprocess.PIPE)
    assert process.stdout
    with process.stdout as ready:
        ready.readline()
        end(process, 0.1)
    assert process.returncode == -signal.SIGKILL
