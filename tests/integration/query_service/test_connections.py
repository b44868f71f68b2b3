"""The query service on a real socket: raw bytes, timeouts and shutdown."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import Router
from starlette.types import Message

from repertory.errors import UsageError
from repertory_query.access.callers import OWNER
from repertory_query.api import exporting
from repertory_query.app import create_app
from repertory_query.backend.pool import Pool
from repertory_query.server.listening import listening
from repertory_query.server.run import configuration
from tests.support.listening import on_thread
from tests.support.query_service import RunningService, settings_of
from tests.support.waiting import until


@pytest.fixture(scope="module")
def address(server: RunningService) -> Iterator[tuple[str, int]]:
    """The address of the service, started as in production."""
    config = configuration(create_app(server.service, server.settings))
    with (
        contextlib.closing(listening(settings_of(server.project, port=0))) as listener,
        on_thread(config, listener),
    ):
        yield listener.getsockname()


def reply_to(address: tuple[str, int], *parts: bytes) -> bytes:
    """Send bytes, and return everything that the server sends until it closes the connection."""
    answer = b""
    with socket.create_connection(address, timeout=30) as connection:
        # The server may close the connection before everything is sent.
        with contextlib.suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
        with contextlib.suppress(ConnectionError):
            while chunk := connection.recv(65_536):
                answer += chunk
    return answer


def test_the_environment_names_no_trusted_proxy(
    server: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise any caller could claim a local address; only local proxies are trusted."""
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    found = configuration(create_app(server.service, server.settings))
    assert found.forwarded_allow_ips == ["127.0.0.1", "::1"]


def test_ten_megabytes_are_refused_without_being_read(address: tuple[str, int]) -> None:
    """The error is sent although the body never arrives."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n"
    answer = reply_to(address, head)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in answer


def test_ten_megabytes_in_chunks_are_read_up_to_the_limit(address: tuple[str, int]) -> None:
    """The server answers 413 although the chunks do not end."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"186a0\r\n" + b" " * 100_000 + b"\r\n"
    assert reply_to(address, head, *[chunk] * 11).startswith(b"HTTP/1.1 413")


def test_a_url_of_ten_megabytes_is_refused(address: tuple[str, int]) -> None:
    """The server does not wait for the end of the request line."""
    answer = reply_to(address, b"GET /search?q=" + b"x" * 10_000_000)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert b"200" in reply_to(address, b"GET /healthz HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize(
    "request_bytes",
    [b"\xff\xfe\x00\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET\r\n\r\n"],
)
def test_bytes_other_than_http_are_refused(address: tuple[str, int], request_bytes: bytes) -> None:
    """The server continues to answer afterwards."""
    assert reply_to(address, request_bytes).startswith(b"HTTP/1.1 400")
    assert b"200" in reply_to(address, b"GET /healthz HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize(
    "parts",
    [
        ["/search?q=clé HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"],
        ["/search?q=cl", "é HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", "\r\n"],
        [
            "/healthz HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /search?q=clé HTTP/1.0\r\nHost: localhost\r\n\r\n",
        ],
    ],
)
def test_an_address_may_have_letters_without_percent_encoding(
    address: tuple[str, int], parts: list[str]
) -> None:
    """Some clients, such as curl, send UTF-8 letters in an address unencoded."""
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(b"GET ")
        answer = b""
        for part in parts:
            connection.sendall(part.encode())
            time.sleep(0.2)  # so that the parts arrive one by one
        while chunk := connection.recv(65_536):
            answer += chunk
    assert b" 400 " not in answer
    assert '"query":"clé"'.encode() in answer


def test_an_address_in_another_encoding_is_refused(address: tuple[str, int]) -> None:
    """The error names the reason; other bytes in a header are still accepted."""
    head = b"GET /search?q=cl\xe9 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert b"The address is not UTF-8" in reply_to(address, head)
    head = head.replace(b"\xe9", b"").replace(b"\r\n\r\n", b"\r\nX-Name: \xe9\r\n\r\n")
    assert reply_to(address, head).startswith(b"HTTP/1.1 200")


def test_a_body_with_two_lengths_is_refused(address: tuple[str, int]) -> None:
    """Request smuggling: a proxy could read the rest of the body as a second request."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
    answer = reply_to(
        address, head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /stats HTTP/1.1"
    )
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_head_is_get_without_a_body(address: tuple[str, int]) -> None:
    """Health checks use it."""
    head, _, body = reply_to(
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
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_an_incomplete_request_times_out(
    address: tuple[str, int], some: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a few thousand incomplete requests would use up all connections."""
    monkeypatch.setattr("repertory_query.server.connection.TIMEOUT_S", 0.1)
    reply_to(address, some)  # fails by its own timeout if the server does not close


def test_an_interrupted_upload_is_no_server_error(
    address: tuple[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    """It gets the status 499, so it raises no alert."""

    def statuses() -> list[int]:
        logged = [one.__dict__ for one in caplog.records if one.message == "request"]
        return [one["status"] for one in logged if one["route"] == "/login"]

    with caplog.at_level("INFO"):
        with socket.create_connection(address, timeout=30) as connection:
            connection.sendall(
                b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                b"Content-Type: application/x-www-form-urlencoded\r\n\r\nk"
            )
            connection.shutdown(socket.SHUT_WR)
            connection.recv(65_536)
        until(statuses)
    assert statuses() == [499]
    assert not [one for one in caplog.records if one.message == "request_failed"]


def test_an_unread_export_closes_its_collection(server: RunningService) -> None:
    """An open collection cannot be dropped or used by another process."""
    store = server.parts.store
    collection = server.live.engine.collection
    assert collection is not None
    name = collection.name
    users = vars(store)["_shards"][name].users
    before = len(users)
    route = exporting.routes(server.service, Pool("other", 1, 1))[0]
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"/export/{name}",
        "headers": [],
        "state": {"caller": OWNER},
    }

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def lost(_: Message) -> None:
        """Discard the message."""

    async def ask() -> None:
        await Router([route])(scope, gone, lost)

    asyncio.run(ask())
    gc.collect()
    assert len(users) == before


def test_an_unread_answer_times_out(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server closes the connection, because each unread answer uses memory."""
    monkeypatch.setattr("repertory_query.server.connection.TIMEOUT_S", 0.1)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(30)
        connection.connect(address)
        asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with pytest.raises(ConnectionError):
            connection.sendall(asked * 200_000)


def test_an_answer_does_not_wait_for_an_acknowledgement(tmp_path: Path) -> None:
    """Connections disable Nagle's algorithm."""
    with listening(settings_of(tmp_path, port=0)) as listener:
        client = socket.create_connection(listener.getsockname())
        connection, _ = listener.accept()
        with client, connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_an_error(address: tuple[str, int], tmp_path: Path) -> None:
    """The error names the port and the option; an unknown host is an error too."""
    with pytest.raises(UsageError, match=f"port {address[1]}.*--port"):
        listening(settings_of(tmp_path, port=address[1]))
    with pytest.raises(UsageError, match=r"no\.such\.host\.invalid"):
        listening(settings_of(tmp_path, host="no.such.host.invalid"))


SERVER = """
import logging, signal, sys
from pathlib import Path
from repertory_query.app import create_app
from repertory_query.server.run import configuration, listening, serve
from tests.support.query_service import RunningService, settings_of
from tests.support.waiting import until
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


def test_sigterm_shuts_down_cleanly(tmp_path: Path) -> None:
    """Active requests are answered, the cleanup code runs, and the exit code is 0."""
    (tmp_path / "project").mkdir()
    environment = os.environ | {"HOME": str(tmp_path)}
    command = [sys.executable, "-c", SERVER, str(tmp_path / "project")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    body = b'{"ids": ["a"]}'
    try:
        assert process.stdout
        event, port = process.stdout.readline().split()
        assert event == "serving"
        place = ("127.0.0.1", int(port))
        assert b"200" in reply_to(place, b"GET /healthz HTTP/1.0\r\n\r\n")
        with socket.create_connection(place, timeout=30) as active:
            active.sendall(
                b"POST /v1/items HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            assert active.recv(1_000).startswith(b"HTTP/1.1 100 ")  # the body is awaited
            process.send_signal(signal.SIGTERM)
            until(lambda: refuses(place), process)
            time.sleep(0.3)  # so that the server has begun to wait for the request
            active.sendall(body)
            assert b"NothingIndexedError" in active.makefile("rb").read()
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert output.splitlines()[-1] == "left"
    assert process.returncode == 0


def refuses(address: tuple[str, int]) -> bool:
    """Whether nothing accepts connections at an address."""
    with socket.socket() as connection:
        return connection.connect_ex(address) != 0
