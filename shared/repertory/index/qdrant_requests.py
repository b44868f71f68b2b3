"""HTTP requests to the nodes of a Qdrant server, on connections that are briefly kept open."""

import http.client
import ssl
import time
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.request import getproxies, proxy_bypass
from weakref import finalize

from typing_extensions import override

from repertory.system.addresses import is_this_machine
from repertory.system.certificates import trusted

CONNECT_TIMEOUT_S = 2
IDLE_S = 2.0  # how long an unused connection is kept; the server closes it after 5 s

_PORTS_OF_SCHEMES = {"http": 80, "https": 443}


class Node(NamedTuple):
    """The address of a node.

    Attributes:
        scheme: ``http`` or ``https``.
        host: Its name or IP address.
        port: The port.
        authorization: The ``Authorization`` header for a proxy in front of it; may be empty.
    """

    scheme: str
    host: str
    port: int
    authorization: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers for this node only."""
        return {"Authorization": self.authorization} if self.authorization else {}

    @override
    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS_OF_SCHEMES[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


class Request(NamedTuple):
    """A request to any node.

    Attributes:
        method: The HTTP method.
        path: The path with the query string.
        content: The body as JSON; empty for no body.
        timeout: The timeout in seconds for each read and write.
    """

    method: str
    path: str
    content: bytes
    timeout: float


class Answer(NamedTuple):
    """The answer of a node.

    Attributes:
        status: The HTTP status.
        content: The body.
        retry_after: The ``Retry-After`` header; empty if missing.
    """

    status: int
    content: bytes
    retry_after: str


class NoAnswerError(Exception):
    """A node cannot be reached, or does not answer in time.

    Attributes:
        is_late: Whether the node was reached but did not answer in time.
    """

    def __init__(self, reason: str, *, is_late: bool) -> None:
        super().__init__(reason)
        self.is_late = is_late


class _Connection(http.client.HTTPConnection):
    """Sends a request in one piece, so that the server wakes up only once, which saves 0.1 ms."""

    _pieces: list[bytes] | None = None

    def ask(self, request: Request, headers: dict[str, str]) -> None:
        """Send a request."""
        pieces = self._pieces = []
        try:
            self.request(request.method, request.path, request.content or None, headers)
        finally:
            self._pieces = None
        rest = memoryview(b"".join(pieces))
        while rest:  # not ``sendall``, which has one timeout for the whole request
            rest = rest[self.sock.send(rest) :]

    @override
    def send(self, data: Any) -> None:  # of many types
        if self._pieces is None:
            super().send(data)
        else:
            self._pieces.append(data)


class _TlsConnection(_Connection, http.client.HTTPSConnection):
    """A connection over TLS."""


class _Idle(NamedTuple):
    since: float
    node: Node
    connection: _Connection


class Direct:
    """Sends requests by the standard library, in half the CPU time of httpx. Threads may share it.

    Args:
        headers: The headers of every request.

    Attributes:
        close: Closes the unused connections.
    """

    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers
        self._idle: deque[_Idle] = deque()  # the last used one at the right
        self.close = finalize(self, _drop, self._idle)  # also called when this object is deleted

    def send(self, node: Node, request: Request) -> Answer:
        """Send a request to a node; it may be sent twice.

        Args:
            node: The node, which is reached without a proxy.
            request: The request, which must be repeatable.

        Raises:
            NoAnswerError: The node does not answer, or not in time.
        """
        try:
            if kept := self._kept(node):
                # It fails if a healthy server has closed the connection. Then use a new one.
                with suppress(ConnectionError, ssl.SSLEOFError, http.client.BadStatusLine):
                    return self._exchange(node, kept, request)
            return self._exchange(node, _connected(node), request)
        except TimeoutError as exc:
            raise NoAnswerError(str(exc), is_late=True) from exc
        except (OSError, http.client.HTTPException, UnicodeError) as exc:  # Unicode: invalid host
            raise NoAnswerError(str(exc), is_late=False) from exc

    def _exchange(self, node: Node, connection: _Connection, request: Request) -> Answer:
        try:
            connection.sock.settimeout(request.timeout)
            connection.ask(request, self._headers | node.headers)
            with connection.getresponse() as response:
                after = response.headers.get("Retry-After", "")
                answer = Answer(response.status, response.read(), after)
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None:  # it is None if the server closes the connection
            self._idle.append(_Idle(time.monotonic(), node, connection))
        _drop(self._idle, time.monotonic() - IDLE_S)
        return answer

    def _kept(self, node: Node) -> _Connection | None:
        """The last used connection to a node, if the server still keeps it open."""
        with suppress(IndexError):
            while one := self._idle.pop():
                if one.node == node and time.monotonic() - one.since < IDLE_S:
                    return one.connection
                one.connection.close()
        return None


def _connected(node: Node) -> _Connection:
    """A new connection to a node."""
    timeout = CONNECT_TIMEOUT_S
    if node.scheme == "https":
        connection: _Connection = _TlsConnection(
            node.host, node.port, timeout=timeout, context=trusted()
        )
    else:
        connection = _Connection(node.host, node.port, timeout=timeout)
    try:
        connection.connect()
    except TimeoutError as exc:  # another node may answer
        raise ConnectionError(f"no connection within {timeout} s") from exc
    return connection


def _drop(idle: deque[_Idle], before: float = float("inf")) -> None:
    """Close connections that were last used before a time."""
    with suppress(IndexError):
        while idle[0].since < before:
            idle.popleft().connection.close()


def is_proxied(node: Node) -> bool:
    """Whether the environment or the system sets a proxy for a node."""
    if is_this_machine(node.host):
        return False
    proxies = getproxies()
    return bool((node.scheme in proxies or "all" in proxies) and not proxy_bypass(node.host))
