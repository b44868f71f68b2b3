"""The addresses of a Qdrant cluster: which one a request goes to, and when it is sent again."""

import logging
from collections.abc import Callable
from threading import Lock
from time import sleep
from typing import Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

import httpx
from qdrant_client.http.exceptions import ResponseHandlingException

from repertory.errors import StoreError
from repertory.index.qdrant_reads import is_proxied

QUERY_TIMEOUT_S = 5  # for a query, which a user waits for; the server stops then, too
CONNECT_TIMEOUT_S = 2
MAX_RETRY_AFTER_S = 60.0  # that a write waits in all because a server asked for it

_PORTS = {"http": 6333, "https": 443}
_RATE_LIMITED, _UNAVAILABLE = 429, 503

R = TypeVar("R", bound="Response")

_log = logging.getLogger(__name__)


class Response(Protocol):
    """What a node answers."""

    @property
    def status_code(self) -> int:
        """The HTTP status."""
        ...


class Cluster:
    """The nodes of a cluster, or one server; a middleware of ``qdrant_client``. Threads share it.

    A request goes to the node that answered last; if that is unreachable, to the next one. It may
    be sent twice: a write compares revisions, and all others can be repeated.

    Attributes:
        shown: The addresses for messages, without users and passwords.
        is_encrypted: Whether all addresses are ``https``.
        prefix: The path that all addresses have in common.
        query_timeout: Seconds that a node may take for a query.
    """

    def __init__(self, urls: str) -> None:
        """Use some addresses, separated by commas.

        Raises:
            StoreError: One is invalid.
        """
        parts = [_parts(url.strip()) for url in urls.split(",")]
        if len({part.path.rstrip("/") for part in parts}) > 1:
            raise StoreError("The URLs of the Qdrant servers must have the same path.")
        self._nodes = [_node(part) for part in parts]
        self.query_timeout = QUERY_TIMEOUT_S
        self._current = 0
        self._leaving = Lock()  # of the current node
        self.prefix = parts[0].path.rstrip("/")
        self.is_encrypted = all(part.scheme == "https" for part in parts)
        self.shown = ", ".join(f"{node}{self.prefix}" for node in self._nodes)

    def __call__(
        self, request: httpx.Request, send: Callable[[httpx.Request], httpx.Response]
    ) -> httpx.Response:
        """Send a request to a node that answers; a write waits if the node asks for it."""
        timeout = request.extensions["timeout"]
        timeout["connect"] = CONNECT_TIMEOUT_S
        if request.method == "GET":
            timeout["read"] = self.query_timeout
        waits = MAX_RETRY_AFTER_S if "wait" in request.url.params else 0.0
        while True:
            response = self.tried(lambda node: send(_addressed(request, node)))
            seconds = _retry_after(response)
            if seconds is None or seconds > waits:
                return response
            waits -= seconds
            sleep(seconds)

    def tried(self, send: Callable[[httpx.URL], R]) -> R:
        """The answer of the current node, else of the next one that is available.

        After a timeout the next node is left to the next request: the caller has waited enough.

        Args:
            send: Asks a node; raises ResponseHandlingException if it does not answer.
        """
        for _ in self._nodes[1:]:
            asked = self._current
            try:
                response = send(self._nodes[asked])
            except ResponseHandlingException as exc:
                self._leave(asked, str(exc.source))
                if isinstance(exc.source, httpx.ReadTimeout):
                    raise
            else:
                if response.status_code != _UNAVAILABLE:
                    return response
                self._leave(asked, "it is not ready")
        return send(self._nodes[self._current])

    @property
    def is_direct(self) -> bool:
        """Whether no node is reached through a proxy."""
        return not any(map(is_proxied, self._nodes))

    def _leave(self, asked: int, reason: str) -> None:
        """Go on with the next node, unless another thread has left this one already."""
        with self._leaving:
            if self._current != asked:
                return
            self._current = (asked + 1) % len(self._nodes)
        node = str(self._nodes[asked])
        _log.warning("qdrant_node_away", extra={"node": node, "error": reason})


def _addressed(request: httpx.Request, node: httpx.URL) -> httpx.Request:
    """A request, addressed to a node."""
    url = request.url
    if (url.scheme, url.host, url.port) != (node.scheme, node.host, node.port):
        request.url = url.copy_with(scheme=node.scheme, host=node.host, port=node.port)
        request.headers["Host"] = request.url.netloc.decode()
    return request


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and parts.hostname and parts.port != 0
    except ValueError:  # half an IPv6 address, or an invalid port
        usable = False
    if not usable:
        raise StoreError("The URL of the Qdrant server must look like http://localhost:6333.")
    return parts


def _node(parts: SplitResult) -> httpx.URL:
    """The address of a node with its port: 443 for ``https``, else 6333, unless it has one."""
    port = parts.port or _PORTS[parts.scheme]
    return httpx.URL(scheme=parts.scheme, host=parts.hostname or "", port=port)


def _retry_after(response: httpx.Response) -> float | None:
    """The seconds after which a server that refuses a request for now would take it."""
    if response.status_code not in (_RATE_LIMITED, _UNAVAILABLE):
        return None
    after = response.headers.get("Retry-After", "")
    return max(float(after), 1.0) if after.isdigit() else None
