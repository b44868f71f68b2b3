"""The HTTP server of the stand-in for Qdrant, which imitates Qdrant's own web server.

If the client accepts compression, an answer is compressed and sent in several small pieces. TCP
then delays all pieces but the first until the client acknowledges the first one, 40 ms later.
"""

import contextlib
import gzip
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import msgspec

Json = Any  # the JSON of a request or an answer

MAX_REQUEST_SIZE = 32 * 2**20
PIECES = 4  # per compressed answer


class RefusedError(Exception):
    """An answer with a status other than 200."""

    def __init__(self, status: int, message: str, retry_after: int | str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed request; tests can inspect it later."""

    method: str
    path: str
    parameters: dict[str, list[str]]
    headers: dict[str, str]  # names in lower case
    body: Json


Answer = Callable[[Request], Json]


class HttpServer(ThreadingHTTPServer):
    """Serves on a local address with one thread per connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], answer: Answer) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(address, partial(_Handler, answer))
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self) -> None:
        """Serve on another thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, and close the idle connections of clients."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as in the base class
        """Remember a new connection."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401  # as in the base class
        """Forget a closed connection."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Stop listening, and close the idle connections of clients."""
        super().server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):  # the client may have disconnected
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as in the base class
        """Ignore clients that disconnected."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def ask(url: str, method: str, path: str, body: Json = None) -> Json:
    """Send one request to a server, and return its answer."""
    content = None if body is None else msgspec.json.encode(body)
    with urlopen(HttpRequest(url + path, content, method=method)) as response:
        return msgspec.json.decode(response.read())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 2**20  # buffer the output, so that each flush sends one piece

    def __init__(self, answer: Answer, *args: Any) -> None:  # noqa: ANN401  # as in the base class
        self._answer = answer
        super().__init__(*args)

    def do_GET(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Log nothing."""

    def _serve(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        content = self.rfile.read(size)
        parts = urlsplit(self.path)
        status, headers = 200, {"Content-Type": "application/json"}
        answer: Json
        try:
            if size > MAX_REQUEST_SIZE:
                raise RefusedError(
                    400,
                    f"Payload error: JSON payload ({size} bytes) is larger than allowed "
                    f"(limit: {MAX_REQUEST_SIZE} bytes).",
                )
            request = Request(
                method=self.command,
                path=parts.path,
                parameters=parse_qs(parts.query),
                headers={name.lower(): value for name, value in self.headers.items()},
                body=msgspec.json.decode(content) if content else None,
            )
            answer = self._answer(request)
        except RefusedError as exc:
            status, answer = exc.status, {"status": {"error": str(exc)}, "time": 0.0}
            if exc.retry_after is not None:
                headers["Retry-After"] = str(exc.retry_after)
        except Exception as exc:  # the engine raises Exception itself for wrong input
            if type(exc) is not Exception:
                status, answer = 501, {"status": {"error": f"{exc!r} in {content[:1_000]!r}"}}
            else:
                status, answer = 400, {"status": {"error": f"Wrong input: {exc}"}, "time": 0.0}
        self._send(status, headers, msgspec.json.encode(answer))

    def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        is_compressed = "gzip" in self.headers.get("Accept-Encoding", "")
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not is_compressed)
        if is_compressed:
            headers |= {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}
        else:
            headers |= {"Content-Length": str(len(content))}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if is_compressed:
            packed = gzip.compress(content)
            length = -(-len(packed) // PIECES)
            for start in range(0, len(packed), length):
                self.wfile.flush()
                piece = packed[start : start + length]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            content = b"0\r\n\r\n"
        self.wfile.write(content)
        self.wfile.flush()
