"""Reads of a Qdrant server by the standard library: they take half the CPU time of the client's."""

import http.client
import time
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.request import getproxies, proxy_bypass
from weakref import finalize

import httpx
from qdrant_client.http.exceptions import ResponseHandlingException
from typing_extensions import override

from repertory.certificates import trusted

IDLE_S = 2.0  # a kept connection; the server closes it after 5


class Answer(NamedTuple):
    """What a server answered."""

    status_code: int
    content: bytes


class _Connection(http.client.HTTPConnection):
    """Sends a request in one piece, for which a server wakes up once: that saves 0.1 ms."""

    _pieces: list[bytes] | None = None

    def post(self, path: str, content: bytes, headers: dict[str, str]) -> None:
        """Send a request."""
        pieces = self._pieces = []
        try:
            self.request("POST", path, content, headers)
        finally:
            self._pieces = None
        self.send(b"".join(pieces))

    @override
    def send(self, data: Any) -> None:  # of many types
        if self._pieces is None:
            super().send(data)
        else:
            self._pieces.append(data)


class _TlsConnection(_Connection, http.client.HTTPSConnection):
    """The same over TLS."""


class _Idle(NamedTuple):
    since: float
    node: httpx.URL
    connection: _Connection


class Reads:
    """Sends requests on connections that are kept open for a moment. Threads may share it.

    Args:
        headers: Those of every request.
        connect_timeout: Seconds.

    Attributes:
        close: Closes the connections that are not in use.
    """

    def __init__(self, headers: dict[str, str], connect_timeout: float) -> None:
        self._headers = headers
        self._connect_timeout = connect_timeout
        self._idle: deque[_Idle] = deque()  # the one used last at the right
        self.close = finalize(self, _drop, self._idle)  # at the end of this object, too

    def post(self, node: httpx.URL, path: str, content: bytes, timeout: float) -> Answer:
        """Send a request to a node; it may be sent twice, since a read can be repeated.

        Args:
            node: The scheme, the host and the port.
            path: With the query.
            content: The body, JSON.
            timeout: Seconds for each part of the answer.

        Raises:
            ResponseHandlingException: There is no answer, or none in time.
        """
        try:
            if kept := self._kept(node):
                # A connection that the server has closed meanwhile fails, however healthy it is.
                with suppress(ConnectionError, http.client.BadStatusLine):
                    return self._exchange(node, kept, path, content, timeout)
            return self._exchange(node, self._connected(node), path, content, timeout)
        except TimeoutError as exc:
            raise ResponseHandlingException(httpx.ReadTimeout(str(exc))) from exc
        except (OSError, http.client.HTTPException) as exc:
            raise ResponseHandlingException(httpx.ConnectError(str(exc))) from exc

    def _exchange(
        self,
        node: httpx.URL,
        connection: _Connection,
        path: str,
        content: bytes,
        timeout: float,
    ) -> Answer:
        try:
            connection.sock.settimeout(timeout)
            connection.post(path, content, self._headers)
            with connection.getresponse() as response:
                answer = Answer(response.status, response.read())
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None:  # else the server closes it
            self._idle.append(_Idle(time.monotonic(), node, connection))
        _drop(self._idle, time.monotonic() - IDLE_S)
        return answer

    def _kept(self, node: httpx.URL) -> _Connection | None:
        """The connection to a node that was used last, if the server still has it."""
        with suppress(IndexError):
            while one := self._idle.pop():
                if one.node == node and time.monotonic() - one.since < IDLE_S:
                    return one.connection
                one.connection.close()
        return None

    def _connected(self, node: httpx.URL) -> _Connection:
        """A new connection to a node."""
        timeout = self._connect_timeout
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
    """Close what was used last before some moment."""
    with suppress(IndexError):
        while idle[0].since < before:
            idle.popleft().connection.close()


def is_proxied(node: httpx.URL) -> bool:
    """Whether requests to a node go through a proxy that the environment names."""
    proxies = getproxies()
    return bool((node.scheme in proxies or "all" in proxies) and not proxy_bypass(node.host))
