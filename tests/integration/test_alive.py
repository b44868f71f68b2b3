"""The health check of containers and pods that have no port."""

import importlib.util
import time
from pathlib import Path
from types import ModuleType

import pytest

from repertory.compose import Parts
from repertory.settings import load
from tests.support.ports import free_port

SCRIPT = Path(__file__).parents[2] / "deploy" / "alive.py"


@pytest.fixture
def alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, run in a new folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REPERTORY_DATA_DIR", str(tmp_path / "data"))
    spec = importlib.util.spec_from_file_location("alive", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_process_that_never_reported_is_not_alive(alive: ModuleType) -> None:
    """It fails the readiness check and also the liveness check, which decides about a restart."""
    assert alive.main("watch") == 1
    assert alive.main("watch", live=True) == 1
    assert alive.main("worker", live=True) == 1


def test_a_process_is_not_restarted_because_redis_is_down(
    alive: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The worker is not ready, but it passes the liveness check, since a restart would not help."""
    monkeypatch.setenv("REPERTORY_REDIS_URL", f"redis://127.0.0.1:{free_port()}/0")
    monkeypatch.setenv("REPERTORY_QDRANT_URL", f"http://127.0.0.1:{free_port()}")
    assert alive.main("worker") == 1
    assert alive.main("worker", live=True) == 0
    assert "Redis" in capsys.readouterr().out


def test_a_process_that_reports_is_alive(
    alive: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is alive until its last report is more than a minute old."""
    here = Path.cwd()
    Parts(load({}, here), here).coordination.status.report("watch", {})
    assert alive.main("watch") == 0
    later = time.time() + 61
    monkeypatch.setattr(alive.time, "time", lambda: later)
    assert alive.main("watch") == 1
