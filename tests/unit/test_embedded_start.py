"""How the embedded server of a directory starts if its data directory has a host."""

import contextlib
import signal
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from repertory.errors import StoreError
from repertory.settings import load
from repertory_embedded import joining, start


def test_a_stopping_process_does_not_wait_for_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host may hang for a minute."""
    begun, may_answer = threading.Event(), threading.Event()

    def join(*_: object) -> None:
        begun.set()
        may_answer.wait(60)
        raise StoreError("It hangs.")

    monkeypatch.setattr(joining, "hosting", lambda _: contextlib.nullcontext(False))
    monkeypatch.setattr(joining, "join", join)
    settings = load({"data_dir": str(tmp_path / "data")}, tmp_path, {})
    stopping: list[int] = []
    args = settings, tmp_path, stopping, Mock()
    process = threading.Thread(target=start.run, args=args, daemon=True)
    process.start()
    assert begun.wait(60)
    stopping.append(signal.SIGTERM)
    process.join(30)
    try:
        assert not process.is_alive()
    finally:
        may_answer.set()
