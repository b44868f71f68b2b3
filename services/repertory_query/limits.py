"""Limits: bytes of an address and of a body, requests per minute."""

import math
import time
from urllib.parse import unquote_to_bytes

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope

MAX_ADDRESS_LENGTH = 400_000  # bytes: a query of 32,000 characters of twelve bytes, and filters
MAX_BODY_SIZE = 1_000_000  # bytes


class Rates:
    """Requests a minute of each caller, in a sliding window of two counters."""

    def __init__(self, per_minute: int) -> None:
        self._limit = RateLimitItemPerMinute(per_minute)
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def count(self, caller: str) -> None:
        """Count a request.

        Raises:
            HTTPException: 429 if there were too many.
        """
        if self._limiter.hit(self._limit, caller):
            return
        again = self._limiter.get_window_stats(self._limit, caller).reset_time - time.time()
        seconds = max(1, math.ceil(again))
        raise HTTPException(
            429,
            f"More than {self._limit.amount:,} requests a minute; go on in {seconds} s.",
            {"Retry-After": str(seconds)},
        )


def check_address(scope: Scope) -> None:
    """Check that a request's address can be read.

    Raises:
        HTTPException: 414 if it is too long, 400 if it is not UTF-8.
    """
    path, query = scope.get("raw_path") or b"", scope["query_string"]
    if len(path) + len(query) > MAX_ADDRESS_LENGTH:
        raise HTTPException(
            414, f"The address has more than {MAX_ADDRESS_LENGTH:,} bytes; send the query by POST."
        )
    try:
        unquote_to_bytes(path + query).decode()
    except UnicodeDecodeError as error:
        raise HTTPException(
            400, "The address is not UTF-8; encode it so, and then by percent."
        ) from error


def bounded(scope: Scope, receive: Receive) -> Receive:
    """The body of a request, up to the maximum size.

    Raises:
        HTTPException: 413 if it is larger, by its header or as it arrives; 400 if it has two
            lengths, of which a proxy might believe the other.
    """
    left = MAX_BODY_SIZE
    headers = HTTPConnection(scope).headers
    length = headers.get("content-length", "")
    if length and "transfer-encoding" in headers:
        raise HTTPException(
            400, "Send Content-Length or Transfer-Encoding, not both.", {"Connection": "close"}
        )
    if length.isdecimal() and int(length[:20]) > MAX_BODY_SIZE:
        raise _too_large()

    async def some() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise _too_large()
        return message

    return some


def _too_large() -> HTTPException:
    return HTTPException(
        413,
        f"The body has more than {MAX_BODY_SIZE:,} bytes; send fewer queries at once.",
        {"Connection": "close"},  # the rest is not read
    )
