"""No data leaves the machine."""

import os
import subprocess
import sys
from pathlib import Path


def test_the_embedding_runtime_leaves_nothing_in_the_home(tmp_path: Path) -> None:
    """ONNX Runtime's telemetry is off: it creates no device id and no database."""
    code = "import repertory.embedding.session; import onnxruntime"
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert list(tmp_path.rglob("*")) == []
