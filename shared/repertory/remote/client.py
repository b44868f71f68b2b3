"""The backend that asks a running server over HTTP. Like ``requests``, it imports little."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from repertory.backend import Backend
from repertory.catalogue.item import Item
from repertory.catalogue.names import compact_name
from repertory.errors import UsageError
from repertory.index.keywords.document import Entry
from repertory.index.vectors import NO_FILTER, Filter
from repertory.remote.requests import RemoteServer, problem_of
from repertory.search.answer import Answer
from repertory.search.explanation import Explanation
from repertory.search.links import Links
from repertory.search.query import Query
from repertory.stats import Contents, Jobs, Rebuild, Stats
from repertory.values import MAX_LIMIT
from repertory.wire import (
    MAX_IDS,
    V1,
    Answers,
    Ids,
    Items,
    RetriedJobs,
    RetryRequest,
    Search,
    Searches,
    SkillMatch,
    Summaries,
)

if TYPE_CHECKING:
    from repertory.calling.result import CallResult
    from repertory.project_search.query import ProjectAnswer, ProjectQuery
    from repertory.review.wire import Event, Reviews
    from repertory.skill_files import SkillFiles
    from repertory.usage.wire import Insights, UnansweredQueries

MAX_ADDRESS = 4_000  # characters of a search's URL parameters
CALL_TIMEOUT_S = 900.0  # longer than the server's own limit
PAGE_SIZE = 5_000  # items per request for a list

T = TypeVar("T")


class Client(Backend):
    """Asks a server. Threads may share it.

    Every method raises ``StoreError`` if the server cannot be reached or cannot answer now, and
    ``UsageError`` if the key is missing or invalid.

    Args:
        url, api_key, is_own: As for ``RemoteServer``.

    Attributes:
        remote: The server.
        notices: What the user should know in addition to each answer.
    """

    notices: tuple[str, ...] = ()

    def __init__(self, url: str, api_key: str | None = None, *, is_own: bool = False) -> None:
        self.remote = RemoteServer(url, api_key, is_own=is_own)

    @override
    def search(self, query: Query) -> Answer:
        if query.limit > MAX_LIMIT:
            raise UsageError(f"The limit is {query.limit}; a server returns at most {MAX_LIMIT}.")
        parameters = _parameters(query)
        if len(urlencode(parameters, doseq=True, errors="replace")) <= MAX_ADDRESS:
            answer = self.remote.ask("GET", "/search", parameters, Answer)
        else:  # reverse proxies refuse long URLs
            body = Searches(queries=[_searched(query)])
            answer = self.remote.ask("POST", "/search", {}, Answers, body=body).answers[0]
        return replace(answer, notices=(*self.notices, *answer.notices))

    @override
    def explain(self, query: Query, item: str) -> Explanation:
        parameters = {**_parameters(query), "item": item}
        found = self.remote.ask("GET", "/explain", parameters, Explanation)
        return replace(found, notices=(*self.notices, *found.notices))

    @override
    def entries(self, where: Filter = NO_FILTER) -> list[Entry]:
        found: list[Entry] = []
        while True:
            after = found[-1].id if found else ""
            page, _ = self.page(where, PAGE_SIZE, after=after)
            if page and page[0].id <= after:  # a release that ignores ``after``
                page, _ = self.page(where, PAGE_SIZE, len(found))
            found += page
            if len(page) < PAGE_SIZE:
                return found

    @override
    def page(
        self, where: Filter, limit: int, offset: int = 0, after: str = ""
    ) -> tuple[list[Entry], int]:
        place = {"offset": offset, "limit": limit, **_filters(where)}
        if after:  # releases up to 0.2 do not know it
            place["after"] = after
        page = self.remote.ask("GET", "/items", place, Summaries)
        entries = [
            Entry(hash="", compact=compact_name(one.name), **msgspec.structs.asdict(one))
            for one in page.items
        ]
        return entries, page.total

    @override
    def contents(self) -> Contents:
        return self.remote.ask("GET", "/contents", {}, Contents)

    @override
    def item(self, item: str) -> Item:
        return self.remote.ask("GET", "/items/" + quote(item, errors="replace"), {}, Item)

    @override
    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        found = [self.remote.ask("POST", "/items", {}, Items, body=one) for one in _bodies(ids)]
        return {item.id: item for page in found for item in page.items}

    @override
    def links(self, item_id: str) -> Links:
        return self.remote.ask("GET", "/links/" + quote(item_id, errors="replace"), {}, Links)

    @override
    def skill_files(self, ids: Sequence[str]) -> "dict[str, SkillFiles]":
        from repertory.skill_files import SkillFiles  # noqa: PLC0415 - a search needs none

        found: dict[str, SkillFiles] = {}
        for body in _bodies(ids):
            found |= self.remote.ask("POST", "/skills/files", {}, dict[str, SkillFiles], body=body)
        return found

    @override
    def skill_file(self, item_id: str, place: str) -> bytes:
        from repertory.skill_files import FileContent  # noqa: PLC0415 - as above

        asked = {"item": item_id, "place": place}
        return self.remote.ask("GET", "/skills/file", asked, FileContent).data

    @override
    def similar_skills(self, query: str) -> list[SkillMatch]:
        text = self._function("Vector.SearchSkills", {"query": query}, str)
        return self.remote.read(HTTPStatus.OK, text.encode(), list[SkillMatch])

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
        body = as_json(arguments)
        status, data = self.remote.send("POST", target, body, CALL_TIMEOUT_S, hangs_up=True)
        failed = problem_of(data) if status == HTTPStatus.BAD_GATEWAY else None
        if failed and failed.side == "tool":
            return CallResult(
                content=failed.content, structured_content=failed.structured_content, is_error=True
            )
        return self.remote.read(status, data, CallResult)

    def _function(self, name: str, arguments: object, kind: type[T]) -> T:
        return self.remote.ask("POST", f"/functions/{name}", {}, kind, body=arguments)

    @override
    def stats(self) -> Stats:
        return self.remote.ask("GET", "/stats", {}, Stats)

    def rebuild(self) -> Rebuild:
        """Start rebuilding the index beside the active one; ``stats`` shows the progress."""
        return self.remote.ask("POST", "/rebuild", {}, Rebuild)

    def jobs(self) -> Jobs:
        """The pending, running and failed jobs."""
        return self.remote.ask("GET", "/queue", {}, Jobs)

    def retry(self, ids: Sequence[str] | None = None) -> int:
        """Retry the failed jobs with these ids, or all failed jobs; return how many."""
        body = RetryRequest(ids=None if ids is None else list(ids))
        return self.remote.ask("POST", "/queue/retry", {}, RetriedJobs, body=body).retried

    def reviews(self) -> "Reviews":
        """The items that wait for approval; see ``ReviewStore.waiting``."""
        from repertory.review.wire import Reviews  # noqa: PLC0415 - a search needs none

        return self.remote.ask("GET", "/reviews", {}, Reviews)

    def approve(self, items: Sequence[str]) -> list[str]:
        """Approve items, each given as ``ID@VERSION``; see ``ReviewStore.approve``."""
        from repertory.review.wire import ApprovalRequest, ApprovedItems  # noqa: PLC0415 - as above

        body = ApprovalRequest(items=list(items))
        return self.remote.ask("POST", "/reviews/approve", {}, ApprovedItems, body=body).items

    def history(self, item: str) -> "list[Event]":
        """The history of an item; see ``ReviewStore.history``."""
        from repertory.review.wire import History  # noqa: PLC0415 - as above

        return self.remote.ask("GET", "/reviews/history", {"item": item}, History).events

    def insights(self) -> "Insights":
        """Insights about the catalogue from the recorded usage."""
        from repertory.usage.wire import Insights  # noqa: PLC0415 - a search needs none

        return self.remote.ask("GET", "/insights", {}, Insights)

    def unanswered(self) -> "UnansweredQueries":
        """The queries that found nothing."""
        from repertory.usage.wire import UnansweredQueries  # noqa: PLC0415 - as above

        return self.remote.ask("GET", "/insights/unanswered", {}, UnansweredQueries)

    @property
    @override
    def gateway(self) -> str:
        return self.remote.url

    @override
    def ensure_indexed(self) -> None:
        """Do nothing: the server indexes by itself."""

    @override
    def refresh(self) -> Stats:
        return self.stats()

    @override
    def close(self) -> None:
        """Do nothing: no connection is kept open."""


def _bodies(ids: Sequence[str]) -> Iterator[Ids]:
    """The bodies of requests for ids, up to ``MAX_IDS`` in each."""
    for start in range(0, len(ids), MAX_IDS):
        yield Ids(ids=list(ids[start : start + MAX_IDS]))


def _parameters(query: Query) -> dict[str, Any]:
    """A search as URL parameters."""
    return {
        "q": query.text,
        "limit": query.limit,
        "threshold": query.threshold,
        **msgspec.to_builtins(query.weights),
        **_filters(query.where),
    }


def _searched(query: Query) -> Search:
    """A search as part of a request body."""
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
