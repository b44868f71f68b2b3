"""The connection to a Qdrant server, and the translation of its errors."""

import contextlib
import logging
import re
from collections.abc import Iterator
from importlib.metadata import version as version_of
from urllib.parse import urlsplit

import httpx
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.common.version_check import is_compatible
from qdrant_client.http.exceptions import (
    ApiException,
    ResponseHandlingException,
    UnexpectedResponse,
)

from repertory.errors import RepertoryError, StoreError

# Older servers ignore the condition of a conditional write, and would lose newer points.
OLDEST_SERVER = (1, 16)

TIMEOUT_S = 30  # for a write, a count or a wait
QUERY_TIMEOUT_S = 5  # for a query, which a user waits for; the server stops then, too
CONNECT_TIMEOUT_S = 2

# A connection for each thread. They are kept open, or a busy client would run out of ports. An idle
# one is closed before the server does so (after 5 s), which would fail a request.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=2.0)

_log = logging.getLogger(__name__)


class QdrantServer:
    """One server. Threads may share it.

    Attributes:
        client: The connection; use it within ``translated``.
        query_timeout: Seconds that the server may take for a query.
    """

    def __init__(self, url: str, api_key: str | None) -> None:
        self.query_timeout = QUERY_TIMEOUT_S
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # half an IPv6 address, or an invalid port
            usable = False
        if not usable:
            raise StoreError("The URL of the Qdrant server must look like http://localhost:6333.")
        self._shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._known_version = False
        # ``check_version`` does it: the client's own asks the server at once, on another thread.
        self.client = QdrantClient(
            url=url,
            api_key=api_key,
            timeout=TIMEOUT_S,
            check_compatibility=False,
            limits=_LIMITS,
            event_hooks={"request": [self._limit]},
        )

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def check_version(self) -> None:
        """Refuse a server that ignores the condition of a conditional write.

        A server whose version the client does not support is used with a warning.

        Raises:
            StoreError: It is too old, or does not answer.
        """
        if self._known_version:
            return
        with self.translated():
            version = self.client.info().version
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        if numbers < OLDEST_SERVER:
            oldest = ".".join(map(str, OLDEST_SERVER))
            raise StoreError(
                f"The Qdrant server at {self._shown} is version {version}: "
                f"{oldest} or newer is needed."
            )
        client = version_of("qdrant-client")
        if not is_compatible(client, version):
            _log.warning("qdrant_version_differs", extra={"server": version, "client": client})
        self._known_version = True

    def make(self, name: str, vectors: models.VectorParams, graph: models.HnswConfigDiff) -> None:
        """Make a collection, payloads on disk, unless one of that name exists."""
        with self.translated():
            try:
                self.client.create_collection(
                    name, vectors_config=vectors, hnsw_config=graph, on_disk_payload=True
                )
            except UnexpectedResponse as exc:
                if not _is_taken(exc):
                    raise

    def _limit(self, request: httpx.Request) -> None:
        """Shorten the timeouts of connecting and of plain reads."""
        timeout = request.extensions["timeout"]
        timeout["connect"] = CONNECT_TIMEOUT_S
        if request.method == "GET":
            timeout["read"] = self.query_timeout

    @contextlib.contextmanager
    def translated(self, missing: str = "", conflict: str = "") -> Iterator[None]:
        """Translate the client's exceptions.

        Args:
            missing: The message for a collection that does not exist.
            conflict: The message for a collection that exists already.
        """
        try:
            yield
        except RepertoryError:
            raise
        except UnexpectedResponse as exc:
            status = exc.status_code
            if missing and status == 404:
                raise StoreError(missing) from exc
            if conflict and _is_taken(exc):
                raise StoreError(conflict) from exc
            if status in (401, 403):
                raise StoreError(
                    f"The Qdrant server at {self._shown} refused us: check the API key."
                ) from exc
            answer = exc.content[:300].decode(errors="replace")
            raise StoreError(
                f"The Qdrant server at {self._shown} answered {status}: {answer}"
            ) from exc
        except ResponseHandlingException as exc:
            raise StoreError(
                f"The Qdrant server at {self._shown} cannot be reached ({exc.source}): "
                "start it, or check the URL."
            ) from exc
        except (ApiException, QdrantException) as exc:
            raise StoreError(f"The Qdrant server at {self._shown} failed: {exc}.") from exc


def _is_taken(exc: UnexpectedResponse) -> bool:
    """Whether a collection of that name exists already."""
    return exc.status_code == 409 or (exc.status_code == 400 and b"already exists" in exc.content)
