"""Bounded HTTP requests for published documents."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urljoin

import msgspec

from repertory.errors import SourceError
from repertory.sources.fetched.urls import (
    address_in,
    check_step,
    host_of,
    is_global,
    is_http,
    is_public,
    shown,
)
from repertory.system.addresses import DIRECT
from repertory.text import one_line

if TYPE_CHECKING:
    import httpx

MAX_REDIRECTS = 5
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0  # without a byte
TOTAL_TIMEOUT_S = 300.0  # including redirects
CHECK_INTERVAL_S = 0.2
CHUNK_SIZE = 1 << 16  # bytes
MAX_VALIDATOR_LENGTH = 1_000  # characters
# These expand a chunk at most a thousandfold. Other encodings, or several, may expand it much more.
_ENCODINGS = {"identity", "gzip", "x-gzip", "deflate"}
_VALIDATORS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """The response of a server.

    Attributes:
        content: The body.
        validators: The validators to pass to the next ``get``.
        is_unchanged: Whether the document has not changed since; the body is then empty.
    """

    content: bytes = b""
    validators: dict[str, str] = {}
    is_unchanged: bool = False


def get(
    url: str,
    limit: int,
    validators: Mapping[str, str] | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Response:
    """Get a document.

    Args:
        url: Its HTTP or HTTPS URL. A user and password in it are sent only to its own host.
        limit: Its maximum size in bytes.
        validators: The validators of the last response.
        is_cancelled: Whether to end soon.

    Returns:
        The document; see ``Response.is_unchanged``.

    Raises:
        SourceError: It is unreachable, too large or too slow, or a redirect is not followed.
    """
    import httpx  # noqa: PLC0415 - only to fetch

    validators = validators or {}
    headers = {"User-Agent": "repertory", "Accept-Encoding": "identity"}
    headers |= {_VALIDATORS[name]: one for name, one in validators.items() if name in _VALIDATORS}
    client = _Client(is_cancelled)
    try:
        with client:
            for _ in range(MAX_REDIRECTS + 1):
                with client.stream(url, headers) as response:
                    if response.has_redirect_location:
                        url = client.next(url, response.headers["location"])
                        continue
                    if response.status_code == HTTPStatus.NOT_MODIFIED and validators:
                        return Response(validators=dict(validators), is_unchanged=True)
                    _check(url, response)
                    return Response(
                        content=_content(url, response, limit, client),
                        validators=_validators_of(response),
                    )
    # A ValueError for an invalid name; an OSError for a connection that was reset at once.
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        client.check(url)
        reason = one_line(str(error)) if isinstance(error, httpx.ConnectError) else ""
        reason = reason or type(error).__name__  # others may quote a URL with its secrets
        raise SourceError(f"{shown(url)} cannot be reached: {reason}.") from None
    raise SourceError(f"{shown(url)} was redirected more than {MAX_REDIRECTS} times.")


def moved(url: str, suffix: str, agent: str, is_cancelled: Callable[[], bool]) -> str:
    """The URL that redirects from a base URL lead to; the URL itself if it is unreachable.

    Args:
        url: The base URL.
        suffix: The suffix of the requests. A redirect to a URL with another suffix is not followed.
        agent: The user agent.
        is_cancelled: Whether to end soon.

    Raises:
        SourceError: A redirect leads to a URL that ``get`` would not follow.
    """
    import httpx  # noqa: PLC0415 - only to fetch

    headers = {"User-Agent": agent}
    client = _Client(is_cancelled)
    try:
        with client:
            for _ in range(MAX_REDIRECTS):
                with client.stream(url + suffix, headers) as response:
                    location = response.headers.get("location", "")
                    if not response.has_redirect_location or not location.endswith(suffix):
                        return url
                url = client.next(url + suffix, location).removesuffix(suffix)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError):
        client.check(url)
    return url


def _next(url: str, location: str) -> str:
    """The target of a redirect. Credentials in a URL are not sent to another one."""
    try:
        following = urljoin(url, location)
    except ValueError:
        raise SourceError(f"{shown(url)} leads to an invalid URL.") from None
    if not is_http(following):
        raise SourceError(f"{shown(url)} leads to {shown(following)}, which is not over HTTP.")
    if url.startswith("https:") and not following.startswith("https:"):
        raise SourceError(f"{shown(url)} leads to {shown(following)}, which is not encrypted.")
    check_step(following, url)
    return following


def _check(url: str, response: "httpx.Response") -> None:
    code = response.status_code
    if code == HTTPStatus.OK:
        if response.headers.get("content-encoding", "identity").strip().lower() not in _ENCODINGS:
            raise SourceError(f"{shown(url)} is compressed in an unsupported encoding.")
        return
    if code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise SourceError(f"{shown(url)} needs a login ({code}).")
    raise SourceError(f"{shown(url)} answers {code}; check the address.")


def _content(url: str, response: "httpx.Response", limit: int, client: "_Client") -> bytes:
    content = bytearray()
    for chunk in response.iter_bytes(CHUNK_SIZE):
        content += chunk
        client.check(url)
        if len(content) > limit:
            raise SourceError(f"{shown(url)} has more than {limit:,} bytes; it was not fetched.")
    client.check(url)
    return bytes(content)


class _Client:
    """An HTTP client whose requests end after a timeout or when they are cancelled.

    A server may send its headers so slowly that the timeout of httpx never applies, so another
    thread closes the connection.

    The address of a name may change between the check of a redirect and the connection, so the
    address of the connection is checked, too. A proxy looks names up itself.
    """

    def __init__(self, is_cancelled: Callable[[], bool]) -> None:
        self._is_cancelled = is_cancelled
        self._deadline = time.monotonic() + TOTAL_TIMEOUT_S
        self._connection: socket.socket | None = None
        self._url = ""
        self._connects_to = ""  # a host: that of the URL, or a proxy
        self._was_public = False  # whether a public server answered before
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        import httpx  # noqa: PLC0415 - only to fetch

        timeout = httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        self._client = httpx.Client(timeout=timeout, mounts=DIRECT)
        self._thread = threading.Thread(target=self._watch, name="fetch-end", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._client.close()

    def stream(
        self, url: str, headers: Mapping[str, str]
    ) -> "contextlib.AbstractContextManager[httpx.Response]":
        """Send a GET request.

        Raises:
            SourceError: Requests should end.
        """
        self.check(url)
        self._url = url
        return self._client.stream("GET", url, headers=headers, extensions={"trace": self._note})

    def check(self, url: str) -> None:
        """Raise a SourceError if requests should end."""
        if self._is_cancelled():
            raise SourceError(f"The fetch of {shown(url)} was interrupted.")
        if time.monotonic() > self._deadline:
            raise SourceError(
                f"{shown(url)} was not complete after {TOTAL_TIMEOUT_S:.0f} s; it was not fetched."
            )

    def next(self, url: str, location: str) -> str:
        """The target of a redirect; a SourceError if it is not followed."""
        following = _next(url, location)
        self._was_public |= is_public(host_of(url))
        return following

    def _note(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the connection of a request, and check its address."""
        if event.endswith("connect_tcp.started"):
            self._connects_to = info["host"]
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._connection = info["return_value"].get_extra_info("socket")
        if event.endswith("connect_tcp.complete"):
            stream = info["return_value"]
            try:
                self._check_address(stream)
            except Exception:
                stream.close()  # httpcore leaves it open
                raise

    def _check_address(self, stream: Any) -> None:  # noqa: ANN401 - of httpcore
        """Refuse a connection into a private network after a redirect of a public server."""
        import httpx  # noqa: PLC0415 - only to fetch

        if self._connects_to != httpx.URL(self._url).raw_host.decode("ascii"):
            return  # a proxy
        is_public = is_global(address_in(stream.get_extra_info("server_addr")[0]))
        if self._was_public and not is_public:
            raise SourceError(
                f"A redirect leads to {shown(self._url)}, which is on a private network; it was "
                "not fetched."
            )
        self._was_public |= is_public

    def _watch(self) -> None:
        while not self._is_over.wait(CHECK_INTERVAL_S):
            if self._is_cancelled() or time.monotonic() > self._deadline:
                with contextlib.suppress(OSError):  # it is closed
                    if self._connection is not None:
                        socket.socket.shutdown(self._connection, socket.SHUT_RDWR)


def _validators_of(response: "httpx.Response") -> dict[str, str]:
    found = {name: response.headers.get(name, "") for name in _VALIDATORS}
    return {name: one for name, one in found.items() if 0 < len(one) <= MAX_VALIDATOR_LENGTH}
