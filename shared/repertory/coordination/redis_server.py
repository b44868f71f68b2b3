"""The connection to a Redis server, and the translation of its errors.

Import this module only when a Redis is configured.
"""

import contextlib
import re
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.commands.core import Script
from redis.retry import Retry

from repertory.errors import ConfigurationError, StoreError
from repertory.values import NAMESPACE

CONNECT_TIMEOUT_S = 2.0
TIMEOUT_S = 5.0  # for a response, or for sending the next part of a request


class RedisServer:
    """One server and one of its databases. Threads may share it; it reconnects automatically.

    Attributes:
        client: The client, which returns bytes. Use it within ``translated``.
    """

    def __init__(self, url: str, namespace: str = NAMESPACE, timeout: float = TIMEOUT_S) -> None:
        """Configure the connection; nothing is sent yet.

        Args:
            url: ``redis://host:6379/0``, or ``rediss:`` for TLS; a user, a password and parameters
                in it are not shown in messages.
            namespace: The prefix of all keys.
            timeout: Seconds to wait for a response.

        Raises:
            ConfigurationError: The URL is invalid.
        """
        parts = _split(url)
        self._namespace = namespace
        self._shown = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
        # Reconnect once, without delay, if a connection died since its last use. Callers work
        # without an unavailable server, so they should not wait for it.
        retry = Retry(NoBackoff(), retries=1, supported_errors=(exceptions.ConnectionError,))
        try:
            pool = redis.ConnectionPool.from_url(
                url, socket_connect_timeout=CONNECT_TIMEOUT_S, socket_timeout=timeout, retry=retry
            )
            pool.make_connection()  # rejects unknown parameters; sends nothing
        except (ValueError, TypeError, exceptions.RedisError) as exc:
            raise ConfigurationError(
                f"The URL of the Redis at {self._shown} has an invalid parameter."
            ) from exc
        self.client = redis.Redis.from_pool(pool)  # closes the pool when it is deleted

    def key(self, *names: str) -> str:
        """The key within the namespace for a name of one or more parts."""
        return ":".join((self._namespace, *names))

    def script(self, lua: str) -> Script:
        """A script that the server runs atomically. Call it within ``translated``."""
        return self.client.register_script(lua)

    def eviction_policy(self) -> str:
        """The server's policy when its memory is full; ``noeviction`` deletes nothing.

        Raises:
            StoreError: It is unavailable.
        """
        with self.translated():  # INFO, because some providers forbid CONFIG
            return str(self.client.info("memory").get("maxmemory_policy", "unknown"))

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Translate the client's exceptions to ``StoreError``."""
        try:
            yield
        except (exceptions.AuthenticationError, exceptions.NoPermissionError) as exc:
            raise self._error("refused us: check the user and the password in its URL") from exc
        except exceptions.BusyLoadingError as exc:
            raise self._error("is starting: wait until it has read its data") from exc
        except (exceptions.ConnectionError, exceptions.TimeoutError) as exc:
            raise self._error(
                f"cannot be reached ({_sentence(exc)}): start it, or check the URL"
            ) from exc
        except exceptions.RedisError as exc:
            if "maxmemory" in str(exc):  # a script's error has no type of its own
                raise self._error("is full: give it more memory") from exc
            raise self._error(f"failed: {_sentence(exc)}") from exc

    def _error(self, what: str) -> StoreError:
        return StoreError(f"The Redis at {self._shown} {what}.")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = (
            parts.scheme in ("redis", "rediss")
            and parts.hostname
            and parts.hostname.encode("idna")
            and parts.port != 0
            and re.fullmatch(r"(/\d*)?", parts.path)
            # An "@" is here if a / ? or # in the password was not escaped.
            and "@" not in parts.query + parts.fragment
        )
    except ValueError:  # half an IPv6 address, or an invalid host or port
        usable = False
    if not usable:
        raise ConfigurationError(
            "The URL of the Redis must look like redis://:password@localhost:6379/0, with special "
            "characters of the password written as %2F."
        )
    return parts


def _sentence(exc: Exception) -> str:
    return " ".join(str(exc).split())[:300].rstrip(".")
