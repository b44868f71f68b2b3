"""The backend that asks a running server over HTTP.

It imports little, since a shell waits for it: the standard library's HTTP and no numpy.
"""

import http.client
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from repertory import errors, proof
from repertory.backend import Backend
from repertory.catalogue.item import Item
from repertory.errors import ConfigurationError, RepertoryError, StoreError, UsageError
from repertory.index.vectors import Filter
from repertory.search.answer import Answer
from repertory.search.explanation import Explanation
from repertory.search.links import Links, Lookup
from repertory.search.query import Query
from repertory.stats import Contents, Jobs, Rebuild, Stats
from repertory.values import MAX_LIMIT
from repertory.wire import (
    MAX_IDS,
    RECORDED,
    V1,
    Alive,
    Answers,
    Ids,
    Items,
    Refusal,
    Retried,
    Retry,
    Search,
    Searches,
    Summaries,
)

if TYPE_CHECKING:
    from repertory.calling.result import CallResult
    from repertory.index.keywords.document import Entry
    from repertory.project_search.query import ProjectAnswer, ProjectQuery
    from repertory.review.store import Event
    from repertory.review.wire import Reviews
    from repertory.skill_files import SkillFiles
    from repertory.skill_vectors.match import SkillMatch
    from repertory.usage.wire import Insights, UnansweredQueries

MAX_ADDRESS = 4_000  # characters of the parameters of a search
_TOO_LONG = (http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE, http.HTTPStatus.REQUEST_URI_TOO_LONG)
CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0  # the first search may wait for a model
CALL_TIMEOUT_S = 900.0  # the server's own limit ends a call before
MAX_ANSWER_SIZE = 100_000_000  # bytes
PAGE_SIZE = 5_000  # items of one request for a list

_OPEN_HEADERS = {"Accept": "application/json"}  # without a key

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Client(Backend):
    """Asks a server. Threads may share it; nothing is kept open between two calls.

    Every method raises ``StoreError`` if the server cannot be reached or cannot answer now, and
    ``UsageError`` if the key is missing or invalid.

    Attributes:
        url: The URL of the server.
        notices: What the user should know beside each answer.
        is_recorded: Whether this process records what it asks; its own user's server then does not.
    """

    notices: tuple[str, ...] = ()
    is_recorded = False

    def __init__(self, url: str, api_key: str | None = None, *, is_own: bool = False) -> None:
        """Use a server; nothing is sent to it yet.

        Args:
            url: ``http://host:port`` or ``https://host``, with a path behind a proxy.
            api_key: The key, if the server requires one.
            is_own: Whether the key is the token of a note. The server must prove that it has it
                before anything else is sent.

        Raises:
            ConfigurationError: The URL or the key is invalid.
        """
        self._place = _split(url)
        self.url = self._place.geturl()
        self._headers = dict(_OPEN_HEADERS)
        self._token = api_key if is_own else None
        self._is_proven = not is_own
        if api_key:
            if not (api_key.isascii() and api_key.isprintable()):
                raise ConfigurationError(
                    "The key in server.api_key cannot be one; give it as it was printed."
                )
            self._headers["Authorization"] = f"Bearer {api_key}"

    @override
    def search(self, query: Query) -> Answer:
        if query.limit > MAX_LIMIT:
            raise UsageError(f"The limit is {query.limit}; a server gives {MAX_LIMIT} at most.")
        parameters = _parameters(query)
        if len(urlencode(parameters, doseq=True, errors="replace")) <= MAX_ADDRESS:
            answer = self._ask("GET", "/search", parameters, Answer)
        else:  # reverse proxies refuse long addresses
            body = Searches(queries=[_searched(query)])
            answer = self._ask("POST", "/search", {}, Answers, body=body).answers[0]
        return replace(answer, notices=(*self.notices, *answer.notices)) if self.notices else answer

    @override
    def explain(self, query: Query, item: str) -> Explanation:
        found = self._ask("GET", "/explain", {**_parameters(query), "item": item}, Explanation)
        return replace(found, notices=(*self.notices, *found.notices)) if self.notices else found

    @override
    def entries(self, where: Filter | None = None) -> "list[Entry]":
        found: list[Entry] = []
        while True:
            after = found[-1].id if found else ""
            page, _ = self.page(where or Filter(), PAGE_SIZE, after=after)
            found += page
            if len(page) < PAGE_SIZE:
                return found

    @override
    def page(
        self, where: Filter, limit: int, offset: int = 0, after: str = ""
    ) -> "tuple[list[Entry], int]":
        from repertory.catalogue.names import compact_name  # noqa: PLC0415 - a search needs none
        from repertory.index.keywords.document import Entry  # noqa: PLC0415 - as above

        place = {"offset": offset, "limit": limit, "after": after, **_filters(where)}
        page = self._ask("GET", "/items", place, Summaries)
        entries = [
            Entry(hash="", compact=compact_name(one.name), **msgspec.structs.asdict(one))
            for one in page.items
        ]
        return entries, page.total

    @override
    def contents(self) -> Contents:
        return self._ask("GET", "/contents", {}, Contents)

    @override
    def item(self, item: str) -> Item:
        return self._ask("GET", "/items/" + quote(item, errors="replace"), {}, Item)

    @override
    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        found = [
            self._ask("POST", "/items", {}, Items, body=Ids(ids=list(ids[start : start + MAX_IDS])))
            for start in range(0, len(ids), MAX_IDS)
        ]
        return {item.id: item for page in found for item in page.items}

    @override
    def links(self, item_id: str, lookup: Lookup | None = None) -> Links:
        return self._ask("GET", "/links/" + quote(item_id, errors="replace"), {}, Links)

    @override
    def skill_files(self, ids: Sequence[str]) -> "dict[str, SkillFiles]":
        from repertory.skill_files import SkillFiles  # noqa: PLC0415 - a search needs none

        found: dict[str, SkillFiles] = {}
        for start in range(0, len(ids), MAX_IDS):
            body = Ids(ids=list(ids[start : start + MAX_IDS]))
            found |= self._ask("POST", "/skills/files", {}, dict[str, SkillFiles], body=body)
        return found

    @override
    def skill_file(self, item_id: str, place: str) -> bytes:
        from repertory.skill_files import FileContent  # noqa: PLC0415 - as above

        asked = {"item": item_id, "place": place}
        return self._ask("GET", "/skills/file", asked, FileContent).data

    @override
    def similar_skills(self, query: str) -> "list[SkillMatch]":
        from repertory.skill_vectors.match import SkillMatch  # noqa: PLC0415 - as above

        text = self._function("Vector.SearchSkills", {"query": query}, str)
        return msgspec.json.decode(text, type=list[SkillMatch])

    @override
    def update_vector(self, filepath: str) -> None:
        self._function("Vector.VectorUpdate", {"filepath": filepath}, str)

    @override
    def search_project(self, query: "ProjectQuery") -> "ProjectAnswer":
        from repertory.project_search.query import ProjectAnswer  # noqa: PLC0415 - as above

        return self._function("search", msgspec.to_builtins(query), ProjectAnswer)

    @property
    @override
    def calls_allowed(self) -> bool:
        return self.stats().calls_allowed

    @override
    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> "CallResult":
        from repertory.calling.arguments import as_json  # noqa: PLC0415 - as above
        from repertory.calling.result import CallResult  # noqa: PLC0415 - as above

        target = f"{V1}/tools/{quote(tool_id, errors='replace')}"
        status, data = self._send("POST", target, as_json(arguments), CALL_TIMEOUT_S)
        failed = _problem(data) if status == http.HTTPStatus.BAD_GATEWAY else None
        if failed and failed.side == "tool":
            return CallResult(
                content=failed.content, structured_content=failed.structured_content, is_error=True
            )
        return self._read(status, data, CallResult)

    def _function(self, name: str, arguments: object, kind: type[T]) -> T:
        return self._ask("POST", f"/functions/{name}", {}, kind, body=arguments)

    @override
    def stats(self) -> Stats:
        return self._ask("GET", "/stats", {}, Stats)

    def rebuild(self) -> Rebuild:
        """Begin to rebuild the index beside the active one; ``stats`` shows the progress."""
        return self._ask("POST", "/rebuild", {}, Rebuild)

    def jobs(self) -> Jobs:
        """The pending, the running and the failed jobs."""
        return self._ask("GET", "/queue", {}, Jobs)

    def retry(self, ids: Sequence[str] | None = None) -> int:
        """Retry failed jobs, all of them if no ids are given; returns how many."""
        body = Retry(ids=None if ids is None else list(ids))
        return self._ask("POST", "/queue/retry", {}, Retried, body=body).retried

    def reviews(self) -> "Reviews":
        """The items that wait for approval; see ``ReviewStore.waiting``."""
        from repertory.review.wire import Reviews  # noqa: PLC0415 - a search needs none

        return self._ask("GET", "/reviews", {}, Reviews)

    def approve(self, items: Sequence[str] | None = None) -> list[str]:
        """Approve items, all that are listed if none are given; see ``ReviewStore.approve``."""
        from repertory.review.wire import Approve, Approved  # noqa: PLC0415 - as above

        body = Approve(items=None if items is None else list(items))
        return self._ask("POST", "/reviews/approve", {}, Approved, body=body).items

    def history(self, item: str) -> "list[Event]":
        """What happened to an item; see ``ReviewStore.history``."""
        from repertory.review.wire import History  # noqa: PLC0415 - as above

        return self._ask("GET", "/reviews/history", {"item": item}, History).events

    def insights(self) -> "Insights":
        """What the recorded usage says about the catalogue."""
        from repertory.usage.wire import Insights  # noqa: PLC0415 - a search needs none

        return self._ask("GET", "/insights", {}, Insights)

    def unanswered(self) -> "UnansweredQueries":
        """The queries that found nothing."""
        from repertory.usage.wire import UnansweredQueries  # noqa: PLC0415 - as above

        return self._ask("GET", "/insights/unanswered", {}, UnansweredQueries)

    @property
    @override
    def gateway(self) -> str:
        return self.url

    @override
    def ensure_indexed(self) -> None:
        """Do nothing: the server indexes by itself."""

    @override
    def refresh(self) -> Stats:
        return self.stats()

    @override
    def close(self) -> None:
        """Do nothing: no connection is kept open."""

    def is_alive(self, timeout_s: float) -> bool:
        """Whether a server answers in time; one of a note must prove that it left it."""
        asked = proof.challenge()
        headers = {**_OPEN_HEADERS, proof.HEADER: asked} if self._token else _OPEN_HEADERS
        try:
            status, data = self._exchange("GET", "/healthz", None, timeout_s, headers)
            if self._token:
                given = msgspec.json.decode(data, type=Alive).proof
                self._is_proven = proof.is_proof(given, self._token, asked)
        except (StoreError, ValueError, RecursionError):
            return False
        return status == http.HTTPStatus.OK and self._is_proven

    def _ask(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Any],
        kind: type[T],
        body: object = None,
    ) -> T:
        """Send a request and read the answer."""
        query = urlencode(parameters, doseq=True, errors="replace")
        target = f"{path}?{query}" if query else path
        return self._read(*self._send(method, V1 + target, body, ANSWER_TIMEOUT_S), kind)

    def _read(self, status: int, data: bytes, kind: type[T]) -> T:
        if not 200 <= status < 300:
            raise self._refusal(status, data)
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise StoreError(
                f"The answer of {self.url} cannot be read: {error}; run the same release here and "
                "there."
            ) from error

    def _send(self, method: str, target: str, body: object, timeout_s: float) -> tuple[int, bytes]:
        """Send a request to a server that is the right one; returns the status and the content."""
        if not (self._is_proven or self.is_alive(timeout_s)):
            raise StoreError(
                f"The server at {self.url} cannot be reached: what answers there is not the server "
                "that left a note in the data directory; start that one again."
            )
        headers = {**self._headers, RECORDED: "1"} if self.is_recorded else self._headers
        status, data = self._exchange(method, target, body, timeout_s, headers)
        if self._token and status == http.HTTPStatus.UNAUTHORIZED:
            self._is_proven = False
            raise StoreError(f"The server at {self.url} has been started again; try again.")
        return status, data

    def _exchange(
        self,
        method: str,
        target: str,
        body: object,
        timeout_s: float,
        headers: Mapping[str, str],
    ) -> tuple[int, bytes]:
        """Send a request and log it; returns the status and the content."""
        began = time.monotonic()
        place = self._place
        secure = place.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(
            place.hostname or "", place.port, timeout=min(CONNECT_TIMEOUT_S, timeout_s)
        )
        sent = None
        if body is not None:
            try:
                sent = msgspec.json.encode(body)
            except UnicodeEncodeError as error:
                raise UsageError("What is sent holds half a character; leave it out.") from error
            headers = {**headers, "Content-Type": "application/json"}
        try:
            connection.connect()
            connection.sock.settimeout(timeout_s)
            connection.request(method, place.path + target, sent, dict(headers))
            response = connection.getresponse()
            data = response.read(MAX_ANSWER_SIZE + 1)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise StoreError(
                f"The server at {self.url} cannot be reached ({reason}); start it, or see that "
                "its address is right."
            ) from error
        finally:
            connection.close()
        if len(data) > MAX_ANSWER_SIZE:
            raise StoreError(f"The server at {self.url} answers with more than can be read.")
        milliseconds = round((time.monotonic() - began) * 1_000, 1)
        path = target.partition("?")[0]
        _log.debug(
            "server_asked",
            extra={"server": self.url, "path": path, "status": response.status, "ms": milliseconds},
        )
        return response.status, data

    def _refusal(self, status: int, data: bytes) -> RepertoryError:
        """The error for a problem."""
        problem = _problem(data)
        detail = problem.detail if problem else ""
        raised = _class(problem.error) if problem else None
        if raised and not issubclass(raised, StoreError):
            return raised(detail)
        if status in _TOO_LONG:
            return UsageError(
                f"What answers at {self.url} takes no request of this length (status {status}); "
                "ask with a shorter text."
            )
        if not detail or status == http.HTTPStatus.NOT_FOUND:
            return StoreError(
                f"What answers at {self.url} is no Repertory server (status {status}); see that "
                "its address is right."
            )
        if status in (401, 403):
            return UsageError(
                f"The server at {self.url} refuses this: {detail} A key is given as "
                "REPERTORY_SERVER_API_KEY."
            )
        if status == http.HTTPStatus.TOO_MANY_REQUESTS or status >= 500:
            kind = raised or StoreError
            return kind(f"The server at {self.url} cannot answer now: {detail}")
        return UsageError(detail)


def _class(name: str) -> type[RepertoryError] | None:
    """The class of our errors with a name, if any."""
    found = getattr(errors, name, None)
    return found if isinstance(found, type) and issubclass(found, RepertoryError) else None


def _problem(data: bytes) -> Refusal | None:
    """The problem that a server reports; None if it is in another form."""
    try:
        return msgspec.json.decode(data, type=Refusal)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.rstrip("/"))
        usable = (
            parts.scheme in ("http", "https")
            and parts.hostname
            and parts.port != 0
            and not (parts.username or parts.password or parts.query or parts.fragment)
        )
    except ValueError:  # half an IPv6 address, or a port that is no number
        usable = False
    if not usable:
        raise ConfigurationError(
            "The URL of the server must look like http://localhost:7700; a key to it is given as "
            "REPERTORY_SERVER_API_KEY."
        )
    return parts


def _parameters(query: Query) -> dict[str, Any]:
    """A search as the parameters of an address."""
    return {
        "q": query.text,
        "limit": query.limit,
        "threshold": query.threshold,
        "alpha": query.weights.alpha,
        "nameWeight": query.weights.name_weight,
        "sectionWeight": query.weights.section_weight,
        **_filters(query.where),
    }


def _searched(query: Query) -> Search:
    """A search as a part of a body."""
    return Search(
        q=query.text,
        limit=query.limit,
        threshold=query.threshold,
        **msgspec.structs.asdict(query.weights),
        **msgspec.structs.asdict(query.where),
    )


def _filters(where: Filter) -> dict[str, Iterable[str]]:
    return {
        "kind": where.kinds,
        "source": where.sources,
        "server": where.servers,
        "tag": where.tags,
    }
