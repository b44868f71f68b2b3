"""Sends requests and reads responses, within limits on time and size.

Imported only when an operation is called, because the HTTP client is slow to import.
"""

import base64
import codecs
import threading
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urljoin

import anyio
import httpx
import msgspec

from repertory.calling.http.credentials import Credentials, credentials_for
from repertory.calling.http.request import Request, request_of
from repertory.calling.result import CallResult
from repertory.errors import CallError, CallTimeoutError, UsageError
from repertory.sources.openapi.api import Api
from repertory.sources.openapi.operation import Operation
from repertory.sources.openapi.servers import origin
from repertory.system.addresses import DIRECT
from repertory.system.cancellation import cancelling, leave_lookups, when_given_up
from repertory.system.certificates import trusted
from repertory.text import clean, cut, media_type_of, one_line

MAX_BYTES = 8 * 2**20  # of one response
MAX_REDIRECTS = 5
MAX_QUOTE_LENGTH = 300  # characters of a response in an error
MAX_TEXT_LENGTH = 20_000  # characters of the response in the result of a failed call
MAX_CONCURRENT_CALLS = 16  # per API, so that a hanging API cannot occupy every thread
_SLOW_CODEC = "punycode"  # takes quadratic time, and is meant for names of hosts only
_FOLLOWED = frozenset((301, 302, 303, 307, 308))
# UnicodeError: the host is not a valid international name.
_FAILURES = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError)


class Requests:
    """Calls operations of APIs. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending_calls: Counter[str] = Counter()

    def call(
        self,
        api: Api,
        operation: Operation,
        arguments: Mapping[str, Any],
        seconds: float,
        environment: Mapping[str, str],
    ) -> CallResult:
        """Call an operation, without retries.

        Args:
            api: The API, which limits where requests may go and has the credentials.
            operation: The operation.
            arguments: Validated arguments.
            seconds: The timeout of the whole call.
            environment: Values for the variables in the configuration.

        Returns:
            The response as a result, with configured secrets masked. A 4xx status becomes a failed
            tool call whose text gives the reason.

        Raises:
            CallsOffError: The operation's URL is outside the API, or a secret is not configured.
            ArgumentsError: An argument cannot be sent.
            UsageError: The caller no longer waits for the response; see ``waiting``.
            CallTimeoutError: The response was not complete in time.
            CallError: The server is unreachable, fails, redirects elsewhere or sends too much.
        """
        api.check(operation.url)
        credentials = credentials_for(api, operation, environment)
        request = request_of(operation, arguments, credentials)
        api.check(request.url)
        self._enter(api)
        try:
            response = anyio.run(_fetch, api, request, seconds)
        except TimeoutError:
            raise CallTimeoutError(
                f"The API {api.name} did not answer within {seconds:g} s."
            ) from None
        # Drop the cause, because its message may quote the URL with secrets.
        except _FAILURES as error:
            reason = credentials.redact(str(error)) or type(error).__name__
            raise CallError(f"The API {api.name} could not be called: {_quoted(reason)}.") from None
        finally:
            with self._lock:
                self._pending_calls[api.name] -= 1
        return _result(api, response, credentials)

    def _enter(self, api: Api) -> None:
        with self._lock:
            if self._pending_calls[api.name] >= MAX_CONCURRENT_CALLS:
                raise CallError(
                    f"The API {api.name} is already answering {MAX_CONCURRENT_CALLS} calls; call "
                    "again when one of them has ended."
                )
            self._pending_calls[api.name] += 1


class _Response:
    """A complete response."""

    def __init__(self, response: httpx.Response, content: bytes) -> None:
        self.status = response.status_code
        self.content = content
        self.media_type = media_type_of(response.headers.get("content-type", ""))
        self.retry_after = response.headers.get("retry-after", "")
        self.charset = _charset(response)

    @property
    def text(self) -> str:
        """The body, decoded and cleaned."""
        try:
            return clean(self.content.decode(self.charset, "replace"))
        except (LookupError, ValueError):  # no codec for text, or one that ignores "replace"
            return clean(self.content.decode("utf-8", "replace"))


def _charset(response: httpx.Response) -> str:
    """The codec for the text of a response, UTF-8 unless its header names a usable one."""
    try:
        name = codecs.lookup(response.charset_encoding or "utf-8").name
    except (LookupError, ValueError):
        return "utf-8"
    return "utf-8" if name == _SLOW_CODEC else name


async def _fetch(api: Api, request: Request, seconds: float) -> _Response:
    leave_lookups()
    with anyio.CancelScope() as given_up, anyio.fail_after(seconds):
        when_given_up(cancelling(given_up))
        async with httpx.AsyncClient(
            verify=trusted(), timeout=httpx.Timeout(None), follow_redirects=False, mounts=DIRECT
        ) as client:
            url, method, content = request.url, request.method, request.content
            given = {"User-Agent": "repertory", **request.headers, "Accept-Encoding": "identity"}
            headers = {name.encode("ascii"): value.encode() for name, value in given.items()}
            for _ in range(MAX_REDIRECTS + 1):
                async with client.stream(method, url, headers=headers, content=content) as answer:
                    if answer.status_code not in _FOLLOWED or "location" not in answer.headers:
                        return _Response(answer, await _read(api, answer))
                    url = _next(api, method, url, answer)
    if given_up.cancelled_caught:
        raise UsageError(f"The call of the API {api.name} was cancelled by its caller.")
    raise CallError(f"The API {api.name} redirects more than {MAX_REDIRECTS} times.")


def _next(api: Api, method: str, url: str, answer: httpx.Response) -> str:
    """The target of a redirect. Only GET and HEAD requests follow redirects, within their origin.

    Raises:
        CallError: The redirect must not be followed.
    """
    try:
        target = urljoin(url, answer.headers["location"])
    except ValueError:
        target = ""
    if method in ("GET", "HEAD") and api.origin and origin(target) == api.origin:
        return target
    # Omit the path, which may contain secrets.
    where = origin(target) or "an invalid URL"
    raise CallError(
        f"The API {api.name} answered with HTTP status {answer.status_code}, a redirect to "
        f"{where}, which was not followed."
    )


async def _read(api: Api, answer: httpx.Response) -> bytes:
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise CallError(f"The API {api.name} compressed its answer, so its size has no limit.")
    content = bytearray()
    async for chunk in answer.aiter_raw():
        content += chunk
        if len(content) > MAX_BYTES:
            raise CallError(f"The API {api.name} sent more than {MAX_BYTES // 2**20} MB.")
    return bytes(content)


def _result(api: Api, response: _Response, credentials: Credentials) -> CallResult:
    status = response.status
    if status >= 500:
        words = _quoted(credentials.redact(response.text))
        raise CallError(
            f"The API {api.name} answered with HTTP status {status}{f': {words}' if words else ''}."
        )
    structured, block = _content(response, credentials)
    if status < 400:
        return CallResult(content=[block], structured_content=structured)
    head = f"HTTP status {status} {_phrase(status)}".rstrip()
    if status in (401, 403):
        head += f": the API {api.name} refuses the credentials, or they do not permit this"
    if status == 429 and response.retry_after:
        head += f": call again after {_quoted(credentials.redact(response.retry_after))}"
    text = cut(str(block.get("text", "")), MAX_TEXT_LENGTH)
    said = {"type": "text", "text": f"{head}\n{text}".strip()}
    return CallResult(content=[said], structured_content=structured, is_error=True)


def _content(response: _Response, credentials: Credentials) -> tuple[Any, dict[str, Any]]:
    """A response as structured data (None if it is not JSON) and as an MCP content block."""
    kind = response.media_type
    if not response.content:
        return None, {"type": "text", "text": _phrase(response.status) or "No content"}
    if kind.endswith("json"):
        try:
            structured = credentials.redact_all(msgspec.json.decode(response.content))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            structured = None  # invalid JSON, so return it as text only
        return structured, {"type": "text", "text": credentials.redact(response.text)}
    data = base64.b64encode(response.content).decode()
    if kind.startswith(("image/", "audio/")):
        return None, {"type": kind.partition("/")[0], "data": data, "mimeType": kind}
    if b"\0" in response.content:
        resource = {"uri": "response:content", "mimeType": kind, "blob": data}
        return None, {"type": "resource", "resource": resource}
    return None, {"type": "text", "text": credentials.redact(response.text)}


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _quoted(text: str) -> str:
    return cut(one_line(text), MAX_QUOTE_LENGTH).rstrip(".")
