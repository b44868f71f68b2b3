"""The certificates that this process trusts."""

import os
import ssl
from functools import cache


@cache
def trusted() -> ssl.SSLContext:
    """The certificates to trust; cached because reading them takes longer than a request."""
    import httpx  # noqa: PLC0415 - slow, and rarely needed

    return httpx.create_ssl_context()


@cache
def of_system() -> ssl.SSLContext:
    """The certificates that the system trusts, or those that the user set for OpenSSL.

    If Python does not know where they are, like the python.org build on macOS, use ``trusted``.
    """
    paths = ssl.get_default_verify_paths()
    names = (paths.openssl_cafile_env, paths.openssl_capath_env)
    is_known = paths.cafile or paths.capath or any(map(os.environ.get, names))
    return ssl.create_default_context() if is_known else trusted()
