"""Requests to a server over HTTP: its address, our key, and the check of its identity.

It imports little, because a shell waits for it: the standard library's HTTP client, no numpy.
"""

import contextlib
import http.client
import logging
import socket
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlencode, urlsplit

import msgspec

from repertory import errors
from repertory.errors import ConfigurationError, RepertoryError, StoreError, UsageError
from repertory.remote import server_identity
from repertory.system.cancellation import when_given_up
from repertory.system.certificates import of_system
from repertory.wire import RECORDED, V1, Liveness, Refusal

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0  # the first search may wait for a model
MAX_ANSWER_SIZE = 100_000_000  # bytes

_TOO_LONG = (http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE, http.HTTPStatus.REQUEST_URI_TOO_LONG)
_SAME_RELEASE = "Run the same release on both sides: restart the server."
_OPEN_HEADERS = {"Accept": "application/json"}  # without a key

_log = logging.getLogger(__name__)

T = TypeVar("T")


class RemoteServer:
    """A server. Thread-safe, since each request opens its own connection.

    Args:
        url: ``http://host:port`` or ``https://host``, with a path behind a proxy.
        api_key: The key, if the server requires one.
        is_own: Whether the key is the token of a note. The server must first prove that it knows
            the token.

    Attributes:
        url: The URL of the server.
        is_recorded: Whether this process records its requests, so that the user's own server does
            not.

    Raises:
        ConfigurationError: The URL or the key is invalid.
    """

    is_recorded = False

    def __init__(self, url: str, api_key: str | None, *, is_own: bool) -> None:
        self._place = _split(url)
        self.url = self._place.geturl()
        self._headers = dict(_OPEN_HEADERS)
        self._token = api_key if is_own else None
        self._is_proven = not is_own
        if api_key:
            if not (api_key.isascii() and api_key.isprintable()):
                raise ConfigurationError(
                    "The key in server.api_key is invalid; copy it exactly as it was printed."
                )
            self._headers["Authorization"] = f"Bearer {api_key}"

    def is_alive(self, timeout_s: float) -> bool:
        """Whether the server answers in time. The server of a note must also prove its identity."""
        asked = server_identity.challenge()
        headers = {**_OPEN_HEADERS, server_identity.HEADER: asked} if self._token else _OPEN_HEADERS
        try:
            status, data = self._exchange(
                "GET", "/healthz", None, timeout_s, headers, has_deadline=True
            )
            if self._token:
                given = msgspec.json.decode(data, type=Liveness).proof
                self._is_proven = server_identity.is_proof(given, self._token, asked)
        except (StoreError, ValueError, RecursionError):
            return False
        return status == http.HTTPStatus.OK and self._is_proven

    def ask(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Any],
        kind: type[T],
        body: object = None,
    ) -> T:
        """Send a request to the API and read the answer; see ``read``.

        Args:
            method: ``GET`` or ``POST``.
            path: The path below the API's prefix.
            parameters: The query parameters.
            kind: The type of the answer.
            body: What is sent as JSON, if anything.
        """
        query = urlencode(parameters, doseq=True, errors="replace")
        target = f"{path}?{query}" if query else path
        return self.read(*self.send(method, V1 + target, body, ANSWER_TIMEOUT_S), kind)

    def read(self, status: int, data: bytes, kind: type[T]) -> T:
        """The answer in a response.

        Raises:
            RepertoryError: The server refused the request, or its answer cannot be read.
        """
        if not 200 <= status < 300:
            raise self._refusal(status, data)
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise StoreError(
                f"The answer of {self.url} cannot be read: {error}; run the same release on both "
                "sides."
            ) from error

    def send(
        self,
        method: str,
        target: str,
        body: object,
        timeout_s: float,
        *,
        hangs_up: bool = False,
    ) -> tuple[int, bytes]:
        """Send a request to the server, after it proved its identity if necessary.

        Args:
            method: The HTTP method.
            target: The path and the parameters.
            body: What is sent as JSON, if anything.
            timeout_s: Seconds for the answer.
            hangs_up: Whether to close the connection once the caller stops waiting, which cancels
                a call; see ``waiting``.

        Returns:
            The status and the content of the response.

        Raises:
            StoreError: The server is unreachable.
        """
        if not (self._is_proven or self.is_alive(timeout_s)):
            raise StoreError(
                f"The server at {self.url} cannot be reached: another program answers there, not "
                "the server of this data directory; restart that server."
            )
        headers = {**self._headers, RECORDED: "1"} if self.is_recorded else self._headers
        status, data = self._exchange(method, target, body, timeout_s, headers, hangs_up=hangs_up)
        if self._token and status == http.HTTPStatus.UNAUTHORIZED:
            self._is_proven = False
            raise StoreError(f"The server at {self.url} was restarted meanwhile; try again.")
        return status, data

    def _exchange(
        self,
        method: str,
        target: str,
        body: object,
        timeout_s: float,
        headers: Mapping[str, str],
        *,
        hangs_up: bool = False,
        has_deadline: bool = False,
    ) -> tuple[int, bytes]:
        """Send a request and log it; returns the status and the content.

        The timeout is for each part of the answer, or with ``has_deadline`` for all of it.
        """
        began = time.monotonic()
        place = self._place
        connection = _connection(place, min(CONNECT_TIMEOUT_S, timeout_s))
        sent = None
        if body is not None:
            try:
                sent = msgspec.json.encode(body)
            except UnicodeEncodeError as error:
                raise UsageError(
                    "The text contains half a character (an unpaired surrogate); remove it."
                ) from error
            headers = {**headers, "Content-Type": "application/json"}
        deadline: threading.Timer | None = None
        try:
            connection.connect()
            connection.sock.settimeout(timeout_s)
            if has_deadline:
                deadline = threading.Timer(timeout_s, _hang_up, [connection.sock])
                deadline.start()
            if hangs_up:
                when_given_up(partial(_hang_up, connection.sock))
            connection.request(method, place.path + target, sent, dict(headers))
            response = connection.getresponse()
            data = response.read(MAX_ANSWER_SIZE + 1)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise StoreError(
                f"The server at {self.url} cannot be reached ({reason}); start it, or check its "
                "address."
            ) from error
        finally:
            if deadline:
                deadline.cancel()
            connection.close()
        if len(data) > MAX_ANSWER_SIZE:
            raise StoreError(f"The answer of the server at {self.url} is too large to be read.")
        milliseconds = round((time.monotonic() - began) * 1_000, 1)
        path = target.partition("?")[0]
        _log.debug(
            "server_asked",
            extra={"server": self.url, "path": path, "status": response.status, "ms": milliseconds},
        )
        return response.status, data

    def _refusal(self, status: int, data: bytes) -> RepertoryError:
        """The error for an unsuccessful response."""
        problem = problem_of(data)
        detail = problem.detail if problem else ""
        if detail.endswith(": unknown."):  # a parameter or field that only this release has
            detail += f" {_SAME_RELEASE}"
        raised = _class(problem.error) if problem else None
        if raised and not issubclass(raised, StoreError):
            return raised(detail)
        if status in _TOO_LONG:
            return UsageError(
                f"The server at {self.url} accepts no request of this length (status {status}); "
                "send a shorter text."
            )
        if not detail or status == http.HTTPStatus.NOT_FOUND:
            return self._unknown(status, is_ours=problem is not None)
        if status in (401, 403):
            return UsageError(
                f"The server at {self.url} refuses this: {detail} Set REPERTORY_SERVER_API_KEY to "
                "a valid key."
            )
        if status == http.HTTPStatus.TOO_MANY_REQUESTS or status >= 500:
            kind = raised or StoreError
            return kind(f"The server at {self.url} cannot answer now: {detail}")
        return UsageError(detail)

    def _unknown(self, status: int, *, is_ours: bool) -> StoreError:
        """The error for an answer that no operation gives; ``is_ours`` if it has our format."""
        unknown = f"The server at {self.url} does not know this request."
        if status == http.HTTPStatus.NOT_FOUND:
            if self._token:  # it proved its identity, so its release must lack this operation
                return StoreError(f"{unknown} {_SAME_RELEASE}")
            if is_ours:
                return StoreError(
                    f"{unknown} Run the same release on both sides, and check the address."
                )
        return StoreError(
            f"The program that answers at {self.url} is not a Repertory server (status {status}); "
            "check the address."
        )


def _hang_up(connected: socket.socket) -> None:
    """Close a connection while another thread reads from it; that read then fails."""
    with contextlib.suppress(OSError):  # it is closed
        socket.socket.shutdown(connected, socket.SHUT_RDWR)  # the TLS socket's own method does more


def problem_of(data: bytes) -> Refusal | None:
    """The problem in a server's answer; None if it has another format."""
    try:
        return msgspec.json.decode(data, type=Refusal)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _class(name: str) -> type[RepertoryError] | None:
    """Our error class of a name; None if there is no such class."""
    found = getattr(errors, name, None)
    return found if isinstance(found, type) and issubclass(found, RepertoryError) else None


def _connection(place: SplitResult, timeout_s: float) -> http.client.HTTPConnection:
    host, port = place.hostname or "", place.port
    if place.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=of_system())


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.rstrip("/"))
        usable = (
            parts.scheme in ("http", "https")
            and parts.hostname
            and parts.hostname.encode("idna")
            and parts.port != 0
            and parts.path.isascii()
            and url.isprintable()
            and " " not in url
            and not (parts.username or parts.password or parts.query or parts.fragment)
        )
    except ValueError:  # an incomplete IPv6 address, an invalid host name, or an invalid port
        usable = False
    if not usable:
        raise ConfigurationError(
            "The URL of the server must look like http://localhost:7700; set its key as "
            "REPERTORY_SERVER_API_KEY."
        )
    return parts
