"""What callers see who may not administer the server: none of its absolute paths."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path, PurePath
from typing import Any, TypeVar

import msgspec
from typing_extensions import override

from repertory.backend import Backend
from repertory.calling.result import CallResult
from repertory.catalogue.item import Item
from repertory.index.keywords.document import Entry
from repertory.index.vectors import Filter
from repertory.keys import Scope
from repertory.project_search.query import ProjectAnswer, ProjectQuery
from repertory.search.answer import Answer, Hit
from repertory.search.explanation import Explanation
from repertory.search.query import Query
from repertory.server_state import Jobs, Stats
from repertory.skill_vectors.match import SkillMatch
from repertory_query.access import Caller

_PLACES = frozenset({"path", "location"})
_PART = r"/[^/\s'\"“”<>,;:()]+"

T = TypeVar("T")
Placed = TypeVar("Placed", Hit, Item, Entry)


def visible_to(caller: Caller, backend: Backend) -> Backend:
    """A backend as a caller sees it."""
    return backend if _sees_all(caller) else Restricted(backend)


def jobs_for(caller: Caller, jobs: Jobs) -> Jobs:
    """The jobs as a caller sees them."""
    return jobs if _sees_all(caller) else _cleaned(jobs)


def text_for(caller: Caller | None, text: str) -> str:
    """A text as a caller sees it; an unknown caller has no scope."""
    return text if caller and _sees_all(caller) else without_paths(text)


class Restricted(Backend):
    """A backend without the absolute paths of its machine.

    Args:
        backend: The backend.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    @override
    def gateway(self) -> str:
        return self._backend.gateway

    @override
    def ensure_indexed(self) -> None:
        self._backend.ensure_indexed()

    @override
    def refresh(self) -> Stats:
        return _cleaned(self._backend.refresh())

    @override
    def stats(self) -> Stats:
        return _cleaned(self._backend.stats())

    @override
    def close(self) -> None:
        self._backend.close()

    @override
    def search(self, query: Query) -> Answer:
        answer = self._backend.search(query)
        hits = [_placed(hit) for hit in answer.hits]
        return msgspec.structs.replace(answer, hits=hits, degraded=without_paths(answer.degraded))

    @override
    def explain(self, query: Query, item: str) -> Explanation:
        found = self._backend.explain(query, item)
        return msgspec.structs.replace(
            found, hit=_placed(found.hit), degraded=without_paths(found.degraded)
        )

    @override
    def entries(self, where: Filter | None = None) -> Sequence[Entry]:
        return [_placed(entry) for entry in self._backend.entries(where)]

    @override
    def item(self, item_id: str) -> Item:
        return _placed(self._backend.item(item_id))

    @override
    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        return {item_id: _placed(item) for item_id, item in self._backend.items(ids).items()}

    @override
    def similar_skills(self, query: str) -> list[SkillMatch]:
        return self._backend.similar_skills(query)

    @override
    def update_vector(self, filepath: str) -> None:
        self._backend.update_vector(filepath)

    @override
    def search_project(self, query: ProjectQuery) -> ProjectAnswer:
        return self._backend.search_project(query)

    @property
    @override
    def calls_allowed(self) -> bool:
        return self._backend.calls_allowed

    @override
    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> CallResult:
        return self._backend.call(tool_id, arguments)


def without_paths(text: str) -> str:
    """A text for people whose absolute paths are cut to their last parts."""
    return _absolute(str(Path.home()), str(Path.cwd())).sub(r"\1", text)


@cache
def _absolute(*roots: str) -> re.Pattern[str]:
    """A path of two parts or more, below a root (which may hold spaces) or below any folder."""
    known = "|".join(re.escape(root) for root in roots if root != "/")
    return re.compile(
        rf"(?<![\w/.~\]-])(?:file:(?://)?)?(?:{known}|{_PART})(?:{_PART})*/({_PART[1:]})/?"
    )


def _sees_all(caller: Caller) -> bool:
    return Scope.ADMIN in caller.scopes


def _placed(found: Placed) -> Placed:
    """A hit, an item or an entry, its path cut to the part that its id names, else to the last."""
    path = PurePath(found.path)
    if not path.is_absolute():
        return found
    named = PurePath(found.id.partition("/")[2]).parts
    parts, count = path.parts, len(named)
    if named and parts[-count:] == named:
        short = parts[-count:]
    elif named and parts[-count - 1 : -1] == named:
        short = parts[-count - 1 :]
    else:
        short = parts[-1:]
    return msgspec.structs.replace(found, path="/".join(short))


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
