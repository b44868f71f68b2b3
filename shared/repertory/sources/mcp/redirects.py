"""The address on this machine that an issuer redirects the browser to."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qsl, urlsplit

import anyio

from repertory.errors import UsageError
from repertory.text import is_same_secret

MAX_LENGTH = 16_384  # characters of an address
POLL_INTERVAL_S = 0.05
REQUEST_TIMEOUT_S = 5.0

_DONE = "You can close this page and go back to the terminal."
_FOREIGN = "No sign-in is waiting for this page."


class Redirects:
    """Waits for the redirect on a port of this machine. A context manager.

    Args:
        port: The port that the client is registered with; 0 for any.

    Attributes:
        port: The port.

    Raises:
        UsageError: The port is taken.
    """

    def __init__(self, port: int) -> None:
        self._state = ""
        self._found: dict[str, str] | None = None
        self._server = self._bound(port)
        self.port = self._server.server_port

    def __enter__(self) -> Self:
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_INTERVAL_S,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def expect(self, state: str) -> None:
        """Accept only the redirect with this state, because any web page can send others."""
        self._state = state

    def accept(self, address: str) -> bool:
        """Accept the address of a redirect. Returns whether it is the expected one."""
        try:
            given = dict(parse_qsl(urlsplit(address.strip()[:MAX_LENGTH]).query))
        except ValueError:
            return False
        is_ours = bool(self._state) and is_same_secret(given.get("state", ""), self._state)
        if is_ours and self._found is None and ("code" in given or "error" in given):
            self._found = given
        return is_ours

    async def wait(self) -> dict[str, str]:
        """The parameters of the redirect."""
        while self._found is None:
            await anyio.sleep(POLL_INTERVAL_S)
        return self._found

    def _bound(self, port: int) -> ThreadingHTTPServer:
        redirects = self

        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_TIMEOUT_S

            def do_GET(self) -> None:
                is_ours = redirects.accept(self.path)
                text = (_DONE if is_ours else _FOREIGN).encode()
                self.send_response(200 if is_ours else 400)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(text)))
                self.send_header("Referrer-Policy", "no-referrer")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                """Log nothing, because the address contains the code."""

        try:
            return ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise UsageError(
                f"The port {port} cannot be used for the redirect of the sign-in: {error.strerror}."
            ) from error
