"""The certificates that this process trusts."""

import ssl
from functools import cache

import httpx


@cache
def trusted() -> ssl.SSLContext:
    """The certificates to trust; reading them takes longer than a request."""
    return httpx.create_ssl_context()
