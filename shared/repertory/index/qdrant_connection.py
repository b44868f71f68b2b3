"""The connection to a Qdrant server, and the translation of its errors."""

import logging
import re
import warnings
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from repertory.errors import StoreError, StoreRefusedError
from repertory.index.qdrant_cluster import Cluster
from repertory.index.qdrant_requests import Answer, Direct, NoAnswerError, Request

if TYPE_CHECKING:
    from repertory.index.qdrant_proxied import Proxied

# Older servers ignore the condition of a conditional write, so newer points would be lost. Servers
# above the newest known version may answer differently.
OLDEST_SERVER, NEWEST_SERVER = (1, 16), (1, 18)
_OLDEST, _NEWEST = (".".join(map(str, one)) for one in (OLDEST_SERVER, NEWEST_SERVER))

TIMEOUT_S = 30  # for a write, a count or a wait
QUERY_TIMEOUT_S = 5  # for a query, for which a user waits; the server then stops, too

_HEADERS = {
    "Content-Type": "application/json",
    # Qdrant sends a compressed answer in several small pieces, and TCP delays the last ones by
    # 40 ms.
    "Accept-Encoding": "identity",
}

# The status codes for an invalid request. The excluded ones may be temporary, such as a wrong key,
# a missing collection or a timeout.
_REFUSALS = frozenset(range(400, 500)) - {401, 403, 404, 408, 429}

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Result(msgspec.Struct, Generic[T]):
    """The answer of a server."""

    result: T


class _Exists(msgspec.Struct):
    exists: bool


class _About(msgspec.Struct):
    """A server's information about itself."""

    version: str


class Replication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a cluster distributes a new collection; None uses the cluster's default.

    Attributes:
        replication_factor: The number of copies of each shard.
        shard_number: The number of shards.
        write_consistency_factor: The number of copies that must confirm a write.
    """

    replication_factor: int | None = None
    shard_number: int | None = None
    write_consistency_factor: int | None = None


class QdrantServer:
    """One server or a cluster, over its REST interface. Threads may share it."""

    def __init__(
        self, urls: str, api_key: str | None, replication: Replication | None = None
    ) -> None:
        """Use some addresses, separated by commas; no request is sent yet.

        Raises:
            StoreError: A URL or the key is invalid.
        """
        api_key = (api_key or "").strip()
        if not (api_key.isascii() and api_key.isprintable()):
            raise StoreError("The API key of Qdrant contains invalid characters.")
        self._replication = msgspec.to_builtins(replication or Replication())
        self._cluster = cluster = Cluster(urls)
        if (api_key or cluster.has_password) and not cluster.is_encrypted:
            secret = "API key" if api_key else "password"
            warnings.warn(
                f"The {secret} of Qdrant is sent over an insecure connection to {cluster.shown}: "
                "use https.",
                stacklevel=2,
            )
        headers = _HEADERS | ({"api-key": api_key} if api_key else {})
        self._requests = _requests(headers, is_direct=cluster.is_direct)
        self._known_version = False

    def close(self) -> None:
        """Close the connections."""
        self._requests.close()

    def check_version(self) -> None:
        """Refuse a server that ignores the condition of a conditional write.

        A server newer than the known versions is used with a warning.

        Raises:
            StoreError: The server is too old, or does not answer.
        """
        if self._known_version:
            return
        version = self._decoded(self._content("GET", "/"), _About).version
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        if numbers < OLDEST_SERVER:
            raise StoreError(
                f"The Qdrant server at {self._cluster.shown} is version {version}: "
                f"{_OLDEST} or newer is needed."
            )
        if numbers > NEWEST_SERVER:
            _log.warning("qdrant_version_differs", extra={"server": version, "newest": _NEWEST})
        self._known_version = True

    def create(self, name: str, settings: Mapping[str, Any]) -> None:
        """Create a collection with payloads on disk.

        Args:
            name: The collection's name.
            settings: The settings of Qdrant's REST interface.

        Raises:
            StoreError: A collection of that name already exists.
        """
        conflict = f"The collection {name} already exists."
        body = {**settings, "on_disk_payload": True, **self._replication}
        self.change("PUT", f"/collections/{name}", body, conflict=conflict)

    def exists(self, name: str) -> bool:
        """Whether there is a collection of that name."""
        return self.ask(f"/collections/{name}/exists", Result[_Exists]).exists

    def read(self, path: str, body: object, answer: type[Result[T]], *, missing: str = "") -> T:
        """Request points with a timeout that the server applies as well; see ``ask``."""
        path = f"{path}?timeout={QUERY_TIMEOUT_S}"
        content = self._content("POST", path, body, timeout=QUERY_TIMEOUT_S, missing=missing)
        return self._decoded(content, answer).result

    def ask(
        self, path: str, answer: type[Result[T]], body: object = None, *, missing: str = ""
    ) -> T:
        """Send a read-only request of the REST interface; see ``change``.

        Args:
            path: The path below the server's address.
            answer: The type of the decoded answer.
            body: The body of a POST, which is sent as JSON; None for a GET, which has the timeout
                of a query.
            missing: The message for a collection that does not exist.
        """
        method, timeout = ("GET", QUERY_TIMEOUT_S) if body is None else ("POST", TIMEOUT_S)
        content = self._content(method, path, body, timeout=timeout, missing=missing)
        return self._decoded(content, answer).result

    def change(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        missing: str = "",
        conflict: str = "",
        waits: bool = False,
    ) -> None:
        """Send a request of the REST interface that changes something.

        Args:
            method: The HTTP method.
            path: The path below the server's address.
            body: The body, which is sent as JSON; None for no body.
            missing: The message for a collection that does not exist.
            conflict: The message for a collection that already exists.
            waits: Whether to wait until the change is done, and to retry if the server asks for it.

        Raises:
            StoreError: The server cannot be reached, or refuses the request.
        """
        self._content(
            method,
            f"{path}?wait=true" if waits else path,
            body,
            timeout=TIMEOUT_S,
            missing=missing,
            conflict=conflict,
            waits=waits,
        )

    def _content(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        timeout: float = QUERY_TIMEOUT_S,
        missing: str = "",
        conflict: str = "",
        waits: bool = False,
    ) -> bytes:
        """The body of the answer to a request; see ``change``."""
        content = b"" if body is None else msgspec.json.encode(body)
        request = Request(method, self._cluster.prefix + path, content, timeout)
        try:
            answer = self._cluster.answer(
                lambda node: self._requests.send(node, request), waits=waits
            )
        except NoAnswerError as exc:
            raise StoreError(
                f"The Qdrant server at {self._cluster.shown} cannot be reached ({exc}): "
                "start it, or check the URL."
            ) from exc
        if answer.status // 100 != 2:
            raise self._refusal(answer, missing, conflict)
        return answer.content

    def _refusal(self, answer: Answer, missing: str, conflict: str) -> StoreError:
        """The error for an answer with the status of a failed request."""
        shown, status = self._cluster.shown, answer.status
        if missing and status == HTTPStatus.NOT_FOUND:
            return StoreError(missing)
        if conflict and _is_taken(answer):
            return StoreError(conflict)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return StoreError(
                f"The Qdrant server at {shown} refused us: check the API key, and the user and the "
                "password in its URL, if it has any."
            )
        text = answer.content[:300].decode(errors="replace")
        kind = StoreRefusedError if status in _REFUSALS else StoreError
        return kind(f"The Qdrant server at {shown} answered {status}: {text}")

    def _decoded(self, content: bytes, answer: type[T]) -> T:
        try:
            return msgspec.json.decode(content, type=answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise StoreError(
                f"The Qdrant server at {self._cluster.shown} "
                f"answered in an unknown format ({exc}): "
                f"use a version from {_OLDEST} to {_NEWEST}, and check the URL."
            ) from exc


def _requests(headers: dict[str, str], *, is_direct: bool) -> "Direct | Proxied":
    if is_direct:
        return Direct(headers)
    from repertory.index.qdrant_proxied import Proxied  # noqa: PLC0415 - slow, seldom needed

    return Proxied(headers)


def _is_taken(answer: Answer) -> bool:
    """Whether an answer says that a collection of that name already exists."""
    return answer.status == HTTPStatus.CONFLICT or (
        answer.status == HTTPStatus.BAD_REQUEST and b"already exists" in answer.content
    )
