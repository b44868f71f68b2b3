"""How the embedded server of a directory starts if its data directory has a host."""

import contextlib
import json
import signal
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from unittest.mock import Mock

import pytest

from repertory.errors import StoreError
from repertory.remote.server_identity import HEADER, proof_of
from repertory.settings import load
from repertory_embedded import joining, start
from tests.support.http_stub import serving


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


def test_an_impossible_model_name_does_not_prevent_joining(tmp_path: Path) -> None:
    """The server says what is wrong with the name when it loads the model."""
    settings = load({"model": "x" * 300}, tmp_path, {})
    terms = joining.Terms.of(settings)
    joining.HostNote(url="http://127.0.0.1:7700", pid=1, secret="s", terms=terms).check(settings)


def test_a_host_that_ends_while_it_is_joined_is_reported(tmp_path: Path) -> None:
    """It has accepted the project, but the connection ends before the first line."""
    (tmp_path / "data").mkdir()
    settings = load({"data_dir": str(tmp_path / "data")}, tmp_path, {})

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        if request.path == "/healthz":
            body = {"alive": True, "proof": proof_of("own", request.headers[HEADER] or "")}
            request.wfile.write(json.dumps(body).encode())

    with serving(answer) as url:
        joining.invite(settings, url, "own")
        with pytest.raises(StoreError, match="cannot be joined: it ended before it answered"):
            joining.join(settings, tmp_path)
