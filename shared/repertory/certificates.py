"""The certificates that this process trusts."""

import ssl
from functools import cache


@cache
def trusted() -> ssl.SSLContext:
    """The certificates to trust; reading them takes longer than a request."""
    import httpx  # noqa: PLC0415 - slow, and most servers need none of them

    return httpx.create_ssl_context()
