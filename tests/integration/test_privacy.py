"""No data leaves the machine."""

import os
import subprocess
import sys
from pathlib import Path


def test_the_embedding_runtime_writes_nothing_to_the_home(tmp_path: Path) -> None:
    """The telemetry of ONNX Runtime is off, so it stores no device id."""
    code = "import repertory.embedding.session; import onnxruntime"
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert list(tmp_path.rglob("*")) == []
