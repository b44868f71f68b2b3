"""The connection to a Qdrant server, and what its failures mean."""

import contextlib
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import (
    ApiException,
    ResponseHandlingException,
    UnexpectedResponse,
)

from repertory.errors import RepertoryError, StoreError

# Older servers pass over the condition of a conditional write, and would lose newer points.
OLDEST_SERVER = (1, 16)

# Seconds, for one request.
TIMEOUT = 30  # a write, or anything that counts or waits
QUERY_TIMEOUT = 5  # what somebody waits for; the server gives up then, too
CONNECT_TIMEOUT = 2

# As many connections as there are threads that ask. They are kept: without, a busy client runs out
# of ports. An idle one is closed before the server does so (after 5 s), which would fail a request.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=2.0)


class QdrantServer:
    """One server. Threads may share it."""

    def __init__(self, url: str, api_key: str | None) -> None:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # half an IPv6 address, or a port that is no number
            usable = False
        if not usable:
            raise StoreError("The URL of the Qdrant server must look like http://localhost:6333.")
        self._shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._known_version = False
        # The check of versions that the client would make asks the server at once, and only warns.
        self.client = QdrantClient(
            url=url,
            api_key=api_key,
            timeout=TIMEOUT,
            check_compatibility=False,
            limits=_LIMITS,
            event_hooks={"request": [_shorten]},
        )

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def check_version(self) -> None:
        """Refuse a server that passes over the condition of a conditional write.

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
        self._known_version = True

    def make(self, name: str, vectors: models.VectorParams, graph: models.HnswConfigDiff) -> None:
        """Make a collection, payloads on disk, unless there is one of that name."""
        with self.translated():
            try:
                self.client.create_collection(
                    name, vectors_config=vectors, hnsw_config=graph, on_disk_payload=True
                )
            except UnexpectedResponse as exc:
                if not _is_taken(exc):
                    raise

    @contextlib.contextmanager
    def translated(self, missing: str = "", conflict: str = "") -> Iterator[None]:
        """Turn what the client raises into our own errors.

        Args:
            missing: What to say when the server knows no such collection.
            conflict: What to say when there is one already.
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


def _shorten(request: httpx.Request) -> None:
    """Give up sooner on a server that cannot be connected to, or only says what it has."""
    timeout = request.extensions["timeout"]
    timeout["connect"] = CONNECT_TIMEOUT
    if request.method == "GET":
        timeout["read"] = QUERY_TIMEOUT


def _is_taken(exc: UnexpectedResponse) -> bool:
    """Whether there is a collection of that name already."""
    return exc.status_code == 409 or (exc.status_code == 400 and b"already exists" in exc.content)
