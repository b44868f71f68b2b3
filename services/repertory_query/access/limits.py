"""Limits on the size of a URL and a body, and on the requests per minute."""

import math
from urllib.parse import unquote_to_bytes

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope

from repertory_query.access.rates import Rates

MAX_ADDRESS_LENGTH = 400_000  # bytes: filters, and a query of 32,000 characters at 12 bytes each
MAX_BODY_SIZE = 1_000_000  # bytes


def check_rate(rates: Rates, caller: str) -> None:
    """Count a request of a caller.

    Raises:
        HTTPException: 429 if there were too many.
    """
    if seconds := math.ceil(rates.wait(caller)):
        raise HTTPException(
            429,
            f"More than {rates.per_minute:,} requests a minute; try again in {seconds} s.",
            {"Retry-After": str(seconds)},
        )


def check_address(scope: Scope) -> None:
    """Check the length and the encoding of a request's URL.

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
            400, "The address is not UTF-8; encode it as UTF-8, then percent-encode it."
        ) from error


def bounded(scope: Scope, receive: Receive) -> Receive:
    """Wrap ``receive`` to limit the size of a request's body.

    Raises:
        HTTPException: 413 if the body is too large, by its header or as it arrives; 400 if two
            headers state its length, since a proxy might use the other one.
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
        f"The body has more than {MAX_BODY_SIZE:,} bytes; send less at once.",
        {"Connection": "close"},  # the rest is not read
    )
