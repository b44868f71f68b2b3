"""The query service on a real socket: bytes, times and its end."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from repertory.errors import UsageError
from repertory_query.app import create_app
from repertory_query.run import configuration, listening
from tests.support.query_service import RunningService, settings_of


@pytest.fixture(scope="module")
def address(server: RunningService) -> Iterator[tuple[str, int]]:
    """Where the service listens, as it is run."""
    listener = listening(settings_of(server.project, port=0))
    running = uvicorn.Server(configuration(create_app(server.service, server.settings)))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    yield listener.getsockname()
    running.should_exit = True
    thread.join()
    listener.close()


def said(address: tuple[str, int], *parts: bytes) -> bytes:
    """What the server says to some bytes, until it says no more."""
    answer = b""
    with socket.create_connection(address, timeout=30) as connection:
        # It may hang up while it is still being talked to.
        with contextlib.suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
        with contextlib.suppress(ConnectionError):
            while chunk := connection.recv(65_536):
                answer += chunk
    return answer


def test_ten_megabytes_are_refused_without_being_read(address: tuple[str, int]) -> None:
    """The answer is there although the body never comes."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n"
    answer = said(address, head)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in answer


def test_ten_megabytes_in_chunks_are_read_as_far_as_allowed(address: tuple[str, int]) -> None:
    """The server hangs up long before the end."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"186a0\r\n" + b" " * 100_000 + b"\r\n"
    assert said(address, head, *[chunk] * 11).startswith(b"HTTP/1.1 413")


def test_an_address_of_ten_megabytes_is_refused(address: tuple[str, int]) -> None:
    """Whether or not there is an end of it."""
    answer = said(address, b"GET /search?q=" + b"x" * 10_000_000)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert b"200" in said(address, b"GET /healthz HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize(
    "request_bytes",
    [b"\xff\xfe\x00\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET\r\n\r\n"],
)
def test_what_is_not_http_is_refused(address: tuple[str, int], request_bytes: bytes) -> None:
    """And does the server no harm."""
    assert said(address, request_bytes).startswith(b"HTTP/1.1 400")
    assert b"200" in said(address, b"GET /healthz HTTP/1.0\r\n\r\n")


def test_a_body_of_two_lengths_is_refused(address: tuple[str, int]) -> None:
    """A proxy before it may have taken the rest for another request."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
    answer = said(address, head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /stats HTTP/1.1")
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_head_is_a_get_without_its_body(address: tuple[str, int]) -> None:
    """As those who only ask whether a server is there expect it."""
    head, _, body = said(
        address, b"HEAD /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    ).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert (b"content-length: 14" in head, body) == (True, b"")


@pytest.mark.parametrize(
    "some",
    [
        b"",
        b"GET /hea",
        b"POST /search HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_a_request_that_does_not_come_is_not_waited_for(
    address: tuple[str, int], some: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a few thousand of them would be all that the server can hold."""
    monkeypatch.setattr("repertory_query.connection.TIMEOUT_S", 0.1)
    said(address, some)  # fails after its own patience if the server does not hang up


def test_answers_that_are_not_taken_are_not_kept(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server hangs up on who asks and does not read, for each answer takes its memory."""
    monkeypatch.setattr("repertory_query.connection.TIMEOUT_S", 0.1)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(30)
        connection.connect(address)
        asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with pytest.raises(ConnectionError):
            connection.sendall(asked * 200_000)


def test_an_answer_is_not_held_back_for_the_client_to_acknowledge_its_head(tmp_path: Path) -> None:
    """Connections send at once what is written to them."""
    with listening(settings_of(tmp_path, port=0)) as listener:
        client = socket.create_connection(listener.getsockname())
        connection, _ = listener.accept()
        with client, connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_address_that_is_taken_is_said_so(address: tuple[str, int], tmp_path: Path) -> None:
    """With what to do about it."""
    with pytest.raises(UsageError, match=f"port {address[1]}.*--port"):
        listening(settings_of(tmp_path, port=address[1]))
    with pytest.raises(UsageError, match=r"no\.such\.host\.invalid"):
        listening(settings_of(tmp_path, host="no.such.host.invalid"))


SERVER = """
import logging, signal, sys
from pathlib import Path
from repertory_query.app import create_app
from repertory_query.run import configuration, listening, serve
from tests.support.query_service import RunningService, settings_of
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s %(port)s")
logging.getLogger("uvicorn").setLevel(logging.ERROR)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
project = Path(sys.argv[1])
try:
    with RunningService(project) as running, listening(settings_of(project, port=0)) as listener:
        serve(create_app(running.service, running.settings), listener)
finally:
    print("left", flush=True)
"""


def test_sigterm_ends_it_in_order(tmp_path: Path) -> None:
    """Requests under way are finished, whoever called is returned to, the exit code is 0."""
    (tmp_path / "project").mkdir()
    environment = os.environ | {"HOME": str(tmp_path)}
    command = [sys.executable, "-c", SERVER, str(tmp_path / "project")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    assert process.stdout
    event, port = process.stdout.readline().split()
    assert event == "serving"
    assert b"200" in said(("127.0.0.1", int(port)), b"GET /healthz HTTP/1.0\r\n\r\n")
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert output.splitlines()[-1] == "left"
    assert process.returncode == 0
