"""The view of callers without the scope ``admin``: only visible sources, and no absolute paths."""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TypeVar

import msgspec
from typing_extensions import override

from repertory.backend import Backend, Forwarding
from repertory.catalogue.item import Item
from repertory.errors import RepertoryError
from repertory.index.keywords.document import Entry
from repertory.index.vectors import NO_FILTER, Filter
from repertory.keys import Scope
from repertory.project_search.query import ProjectAnswer, ProjectQuery
from repertory.search.answer import Answer, Hit
from repertory.search.explanation import Explanation
from repertory.search.query import Query
from repertory.sources.mcp.traffic import SAYS
from repertory.stats import Contents, Jobs, Stats
from repertory_query.access.callers import Caller
from repertory_query.backend.served_index import ServedIndex
from repertory_query.backend.service import Service

_PLACES = frozenset({"path", "location", "directory"})  # the fields whose whole text may be a path
# A name in a path: it may contain spaces and apostrophes, but no other quotes, ":", ";", "<", ">".
_NAME = r"(?!\s)(?:[^/\n:;'\"“”<>]|(?<=\w)'(?=\w))+(?<![\s=])"
_FOLDERS = re.compile(  # the folders of an absolute path, up to its last name
    rf"(?<![\w/.~\])-])(?:file:(?://)?)?/(?:{_NAME}/)*(?=[^\s/:;,'\"“”<>()])"
)
_LISTED = re.compile(r"^( *Path: )/.*/", re.MULTILINE)  # the same in a project search report
# What an MCP server wrote, to the end of the line.
_WRITTEN = re.compile(rf"{SAYS}[^\n]*")

T = TypeVar("T")
WithPath = TypeVar("WithPath", Hit, Item, Entry)


def sees_all(caller: Caller) -> bool:
    """Whether a caller sees every source and every path."""
    return Scope.ADMIN in caller.scopes


def visible_to(caller: Caller, service: Service) -> Backend:
    """A server as a caller sees it."""
    return service if sees_all(caller) else Restricted(service.for_groups(caller.groups))


def for_caller(caller: Caller, service: Service) -> ServedIndex:
    """As ``visible_to``, but for use inside the server: its texts still have the paths."""
    return service if sees_all(caller) else service.for_groups(caller.groups)


def visibility(caller: Caller, service: Service) -> frozenset[str] | None:
    """The sources that a caller may see; None for all. Equal values mean equal answers.

    Raises:
        StoreError: The sources are not known.
    """
    return None if sees_all(caller) else service.for_groups(caller.groups).visible


def jobs_for(caller: Caller, service: Service) -> Jobs:
    """The jobs as a caller sees them."""
    if sees_all(caller):
        return service.jobs()
    return _cleaned(service.for_groups(caller.groups).jobs())


def contents_for(caller: Caller, found: Contents) -> Contents:
    """The numbers of a catalogue, with the caller's own permissions."""
    if Scope.CALL in caller.scopes:
        return found
    return msgspec.structs.replace(found, calls_allowed=False, changes_allowed=False)


def stats_for(caller: Caller, found: Stats) -> Stats:
    """The statistics, with the caller's own permission to call tools."""
    if Scope.CALL in caller.scopes:
        return found
    return msgspec.structs.replace(found, calls_allowed=False)


def with_path_for(caller: Caller, found: WithPath) -> WithPath:
    """A hit, an item or an entry as a caller sees it."""
    return found if sees_all(caller) else _with_short_path(found)


def text_for(caller: Caller | None, text: str) -> str:
    """A text as a caller sees it; an unknown caller has no scopes."""
    return text if caller and sees_all(caller) else without_paths(text)


class Restricted(Forwarding):
    """A backend that hides the absolute paths of its machine, also in errors.

    Args:
        backend: The backend.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @override
    def forward(self, request: Callable[[Backend], T]) -> T:
        try:
            return request(self._backend)
        except RepertoryError as error:
            raise type(error)(without_paths(str(error))) from error

    @override
    def refresh(self) -> Stats:
        return _cleaned(super().refresh())

    @override
    def stats(self) -> Stats:
        return _cleaned(super().stats())

    @override
    def search(self, query: Query) -> Answer:
        answer = super().search(query)
        return msgspec.structs.replace(
            answer,
            hits=[_with_short_path(hit) for hit in answer.hits],
            degraded=without_paths(answer.degraded),
            notices=tuple(map(without_paths, answer.notices)),
        )

    @override
    def explain(self, query: Query, item: str) -> Explanation:
        found = super().explain(query, item)
        return msgspec.structs.replace(
            found,
            hit=_with_short_path(found.hit),
            degraded=without_paths(found.degraded),
            notices=tuple(map(without_paths, found.notices)),
        )

    @override
    def entries(self, where: Filter = NO_FILTER) -> Sequence[Entry]:
        return [_with_short_path(entry) for entry in super().entries(where)]

    @override
    def page(
        self, where: Filter, limit: int, offset: int = 0, after: str = ""
    ) -> tuple[Sequence[Entry], int]:
        found, total = super().page(where, limit, offset, after)
        return [*map(_with_short_path, found)], total

    @override
    def item(self, item: str) -> Item:
        return _with_short_path(super().item(item))

    @override
    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        return {item_id: _with_short_path(item) for item_id, item in super().items(ids).items()}

    @override
    def search_project(self, query: ProjectQuery) -> ProjectAnswer:
        answer = super().search_project(query)
        return msgspec.structs.replace(answer, content=_LISTED.sub(r"\1", answer.content))


def without_paths(text: str) -> str:
    """A text with absolute paths cut to their last parts; URLs and relative paths are kept.

    Text written by an MCP server is left out: it may contain a changed form of a secret that is not
    recognised.
    """
    return _FOLDERS.sub("", _WRITTEN.sub(".", text))


def _with_short_path(found: WithPath) -> WithPath:
    """A hit, an item or an entry, with its path cut to the part in its id, or else to its name."""
    path = PurePath(found.path)
    if not path.is_absolute():
        return found
    named, shown = found.id.partition("/")[2], path.name
    for part in (named, f"{named}/{path.name}") if named else ():
        if str(path).endswith(f"/{part}"):
            shown = part
    return msgspec.structs.replace(found, path=shown)


def _cleaned(state: T) -> T:
    """A struct without absolute paths in any of its texts."""
    return msgspec.convert(_walked(msgspec.to_builtins(state)), type(state))


def _walked(value: object, key: str = "") -> object:
    if isinstance(value, str):
        is_place = key in _PLACES and PurePath(value).is_absolute()
        return PurePath(value).name if is_place else without_paths(value)
    if isinstance(value, dict):
        return {name: _walked(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_walked(one, key) for one in value]
    return value
