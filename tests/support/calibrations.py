"""One folder of calibrations for all tests of a run: each process would fit its model again."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from repertory.embedding.engine import EmbeddingEngine
from repertory.search.calibration import Progress, calibrate

FOLDER = "calibrations"

_shared: list[Path] = []


@pytest.fixture(scope="session", autouse=True)
def shared_calibrations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Share the calibrations of this process; ``share`` does it for a data directory."""
    base = tmp_path_factory.getbasetemp()
    # The processes of a parallel run have folders of their own beside each other.
    models = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    (models / FOLDER).mkdir(exist_ok=True)
    _shared.append(models)

    def calibrated(
        engine: EmbeddingEngine, _models: Path, progress: Progress | None = None
    ) -> None:
        calibrate(engine, models, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("repertory.compose.calibrate", calibrated)
        yield


def share(data: Path) -> None:
    """Let the processes of a data directory use the shared calibrations."""
    link = data / "models" / FOLDER
    if _shared and not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(_shared[0] / FOLDER, target_is_directory=True)
