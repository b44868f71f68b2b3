"""The connection to a Qdrant server, and the translation of its errors."""

import contextlib
import logging
import re
from collections.abc import Iterator
from importlib.metadata import version as version_of
from typing import Any, TypeVar

import httpx
import msgspec
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.common.version_check import is_compatible
from qdrant_client.http.exceptions import (
    ApiException,
    ResponseHandlingException,
    UnexpectedResponse,
)

from repertory.errors import RepertoryError, StoreError, StoreRefusedError
from repertory.index.qdrant_cluster import CONNECT_TIMEOUT_S, Cluster
from repertory.index.qdrant_reads import Answer, Reads

# Older servers ignore the condition of a conditional write, and would lose newer points.
OLDEST_SERVER = (1, 16)

TIMEOUT_S = 30  # for a write, a count or a wait

# A connection for each thread. They are kept open, or a busy client would run out of ports. An idle
# one is closed before the server does so (after 5 s), which would fail a request.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=2.0)
# Qdrant sends a compressed answer in several small pieces, of which TCP holds back the last ones
# for 40 ms.
_HEADERS = {"Accept-Encoding": "identity"}

# Answers to an invalid request; others of this range may change: a key, a collection, a time limit.
_REFUSALS = frozenset(range(400, 500)) - {401, 403, 404, 408, 429}

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Replication(msgspec.Struct, frozen=True, kw_only=True):
    """How a cluster spreads a new collection; None leaves it to the cluster.

    Attributes:
        replication_factor: Copies of each shard.
        shard_number: Shards.
        write_consistency_factor: Copies that must have a write before it counts as done.
    """

    replication_factor: int | None = None
    shard_number: int | None = None
    write_consistency_factor: int | None = None


class QdrantServer:
    """One server or a cluster. Threads may share it.

    Attributes:
        client: The connection; use it within ``translated``.
    """

    def __init__(
        self, urls: str, api_key: str | None, replication: Replication | None = None
    ) -> None:
        self._replication = msgspec.structs.asdict(replication or Replication())
        self._cluster = cluster = Cluster(urls)
        key = {"api-key": api_key} if api_key else {}
        self._headers = _HEADERS | key | {"Content-Type": "application/json"}
        self._reads = Reads(self._headers, CONNECT_TIMEOUT_S) if cluster.is_direct else None
        self._known_version = False
        # ``check_version`` does it: the client's own asks the server at once, on another thread.
        self.client = QdrantClient(
            host="qdrant",  # the cluster replaces it
            https=cluster.is_encrypted,
            prefix=cluster.prefix,
            api_key=api_key,
            timeout=TIMEOUT_S,
            check_compatibility=False,
            headers=_HEADERS,
            limits=_LIMITS,
        )
        self.client.http.client.add_middleware(cluster)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()
        if self._reads:
            self._reads.close()

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
                f"The Qdrant server at {self._cluster.shown} is version {version}: "
                f"{oldest} or newer is needed."
            )
        client = version_of("qdrant-client")
        if not is_compatible(client, version):
            _log.warning("qdrant_version_differs", extra={"server": version, "client": client})
        self._known_version = True

    def create(
        self,
        name: str,
        vectors: models.VectorParams,
        graph: models.HnswConfigDiff,
        **settings: Any,  # noqa: ANN401 - of the client
    ) -> None:
        """Make a collection, payloads on disk.

        Raises:
            StoreError: A collection of that name exists already.
        """
        with self.translated(conflict=f"There is a collection {name} already."):
            self.client.create_collection(
                name,
                vectors_config=vectors,
                hnsw_config=graph,
                on_disk_payload=True,
                **self._replication,
                **settings,
            )

    def exists(self, name: str) -> bool:
        """Whether there is a collection of that name."""
        with self.translated():
            return self.client.collection_exists(name)

    def read(self, path: str, body: object, answer: type[T]) -> T:
        """Ask for points, as a search does; use it within ``translated``.

        The client's models and httpx take several times as long as the request itself.

        Args:
            path: Below the address of the server.
            body: What is sent as JSON.
            answer: What the answer is decoded to.
        """
        seconds = self._cluster.query_timeout
        content = msgspec.json.encode(body)
        path = f"{self._cluster.prefix}{path}?timeout={seconds}"
        if reads := self._reads:
            given: Answer | httpx.Response = self._cluster.tried(
                lambda node: reads.post(node, path, content, seconds)
            )
        else:
            given = self._through_client(path, content, seconds)
        if given.status_code != httpx.codes.OK:
            raise UnexpectedResponse(given.status_code, "", given.content, httpx.Headers())
        try:
            return msgspec.json.decode(given.content, type=answer)
        except msgspec.DecodeError as exc:
            raise ResponseHandlingException(exc) from exc

    def _through_client(self, path: str, content: bytes, seconds: float) -> httpx.Response:
        """The same request through a proxy, which httpx knows how to ask."""
        http = self.client.http.client
        request = httpx.Request(
            "POST",
            f"http://qdrant{path}",  # the cluster replaces it
            content=content,
            headers=self._headers,
            extensions={"timeout": httpx.Timeout(seconds).as_dict()},
        )
        return http.middleware(request, http.send_inner)

    @contextlib.contextmanager
    def translated(self, missing: str = "", conflict: str = "") -> Iterator[None]:
        """Translate the client's exceptions.

        Args:
            missing: The message for a collection that does not exist.
            conflict: The message for a collection that exists already.
        """
        shown = self._cluster.shown
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
                    f"The Qdrant server at {shown} refused us: check the API key."
                ) from exc
            answer = exc.content[:300].decode(errors="replace")
            message = f"The Qdrant server at {shown} answered {status}: {answer}"
            if status in _REFUSALS:
                raise StoreRefusedError(message) from exc
            raise StoreError(message) from exc
        except ResponseHandlingException as exc:
            if not isinstance(exc.source, httpx.HTTPError | httpx.InvalidURL):
                raise StoreError(
                    f"The Qdrant server at {shown} answered in a form that qdrant-client "
                    f"{version_of('qdrant-client')} does not know: use versions that fit."
                ) from exc
            raise StoreError(
                f"The Qdrant server at {shown} cannot be reached ({exc.source}): "
                "start it, or check the URL."
            ) from exc
        except (ApiException, QdrantException) as exc:
            raise StoreError(f"The Qdrant server at {shown} failed: {exc}.") from exc


def _is_taken(exc: UnexpectedResponse) -> bool:
    """Whether a collection of that name exists already."""
    return exc.status_code == 409 or (exc.status_code == 400 and b"already exists" in exc.content)
