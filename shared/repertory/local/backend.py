"""The backend with an index in this process, for one-shot commands and servers."""

import abc
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace
from typing_extensions import override

from repertory.backend import CALLS_OFF, Backend
from repertory.catalogue.item import Item
from repertory.compose import Parts
from repertory.coordination.lease import Holders
from repertory.coordination.status import WATCH
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.words import WORDS_MODEL
from repertory.errors import CallsOffError, StoreError
from repertory.index.keywords.document import Entry
from repertory.index.vectors import NO_FILTER, Filter
from repertory.indexing.collection_names import (
    configuration_of,
    generation_of,
    generations,
    model_slug,
    next_alias,
)
from repertory.live_search.live import LiveSearch
from repertory.search import lookup
from repertory.search.answer import Answer
from repertory.search.engine import SearchEngine
from repertory.search.explain import explain
from repertory.search.explanation import Explanation
from repertory.search.filters import checked
from repertory.search.linking import links
from repertory.search.links import Links
from repertory.search.query import Query
from repertory.sources.source import Problem, Severity
from repertory.stats import Contents, Lengths, Rebuild, Stats, Watch, workers_of
from repertory.system.addresses import url_of
from repertory.system.files import is_project
from repertory.system.paths import expanded
from repertory.text import normalized
from repertory.watch_status import SourceState, WatchStatus, watch_status

if TYPE_CHECKING:  # a search needs none of them
    from repertory.calling.calls import Calls
    from repertory.calling.result import CallResult
    from repertory.indexing.job import JobQueue
    from repertory.project_search.query import ProjectAnswer, ProjectQuery
    from repertory.project_search.search import ProjectSearch
    from repertory.skill_files import SkillFiles
    from repertory.skill_vectors.vectors import SkillVectors
    from repertory.wire import SkillMatch

T = TypeVar("T")


class Local(Backend, abc.ABC):
    """Answers requests from this process's index.

    Args:
        parts: Its components.
        live: The live search.

    Attributes:
        settings: The active settings.
        workspace: The directory and its catalogue.
    """

    def __init__(self, parts: Parts, live: LiveSearch) -> None:
        self.parts = parts
        self.live = live
        self.settings = parts.settings
        self.workspace = parts.workspace
        self._creating = threading.Lock()  # two threads may ask for the same cached property

    @property
    @override
    def gateway(self) -> str:
        values = self.settings.values
        return url_of(values.host, values.port)

    @property
    def engine(self) -> SearchEngine:
        """The current search engine; StoreError if nothing can be searched."""
        return self.live.engine

    def embedding(self) -> EmbeddingEngine:
        """The engine for queries, waiting for it; ModelError if no model is available."""
        return self.parts.queries.get()

    @override
    def search(self, query: Query) -> Answer:
        engine = self.engine
        return engine.search(self._checked(engine, query))

    @override
    def explain(self, query: Query, item: str) -> Explanation:
        engine = self.engine
        found = explain(engine, self._checked(engine, query), item)
        with contextlib.suppress(StoreError):  # without the store, the words alone explain it
            return replace(found, links=self.links(found.hit.id))
        return found

    @override
    def entries(self, where: Filter = NO_FILTER) -> list[Entry]:
        engine = self.engine
        return lookup.entries(engine.keywords, self._where(engine, where))

    @override
    def page(
        self, where: Filter, limit: int, offset: int = 0, after: str = ""
    ) -> tuple[Sequence[Entry], int]:
        engine = self.engine
        return engine.keywords.page(self._where(engine, where), limit, offset, after)

    @override
    def contents(self) -> Contents:
        kinds, skills = self.engine.keywords.contents()
        return Contents(
            kinds={kind: dict(sources) for kind, sources in kinds.items()},
            skills=skills,
            calls_allowed=self.calls_allowed,
        )

    def _checked(self, engine: SearchEngine, query: Query) -> Query:
        return replace(query, where=self._where(engine, query.where)) if query.where else query

    def _where(self, engine: SearchEngine, where: Filter) -> Filter:
        """A filter with checked values; see ``filters.checked``."""
        return checked(where, engine.keywords, self.source_states) if where else where

    def source_states(self) -> Sequence[SourceState]:
        """The states of the sources in the watch service's last report."""
        watch = read_or_none(lambda: watch_status(self.parts.coordination.status))
        return watch.sources if watch else ()

    @override
    def item(self, item: str) -> Item:
        return lookup.item(self.engine, item)

    def tool(self, tool_id: str) -> Item:
        """The tool to call, by id. A name is not enough, since another server may use it later.

        Accents may be written as separate characters.
        """
        found = self.item(tool_id)
        if normalized("NFC", found.id) != normalized("NFC", tool_id):
            raise lookup.unknown(self.engine.keywords, tool_id)
        return found

    @override
    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        return self.engine.items(ids)

    @override
    def links(self, item_id: str) -> Links:
        return links(self.engine.keywords, item_id, self.items)

    @override
    def skill_files(self, ids: Sequence[str]) -> "dict[str, SkillFiles]":
        from repertory.skill_files import files_of  # noqa: PLC0415 - rarely needed

        return {item_id: files_of(item) for item_id, item in self.items(ids).items()}

    @override
    def skill_file(self, item_id: str, place: str) -> bytes:
        from repertory.skill_files import content_of  # noqa: PLC0415 - rarely needed

        return content_of(self.item(item_id), place)

    @override
    def similar_skills(self, query: str) -> "list[SkillMatch]":
        # Files that were written one by one are found without an index, too.
        return self.skill_vectors.search(query, read_or_none(lambda: self.engine))

    @override
    def update_vector(self, filepath: str) -> None:
        self.skill_vectors.update(filepath)

    @property
    def skill_vectors(self) -> "SkillVectors":
        """The vectors of the sandbox's files."""
        with self._creating:
            return self._skill_vectors

    @override
    def search_project(self, query: "ProjectQuery") -> "ProjectAnswer":
        with self._creating:
            files = self._project_search
        try:
            engine: SearchEngine | None = self.engine
        except StoreError:  # the files of the folder are still found
            if not files.has_folder:
                raise
            engine = None
        return files.search(engine, query)

    @property
    @override
    def calls_allowed(self) -> bool:
        return self.settings.values.allow_calls

    @override
    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> "CallResult":
        self._check_calls()
        return self.call_tool(self.tool(tool_id), arguments)

    def _check_calls(self) -> None:
        """Check that tools may be called; CallsOffError if not."""
        if not self.calls_allowed:
            raise CallsOffError(CALLS_OFF)

    def call_tool(self, tool: Item, arguments: Mapping[str, Any]) -> "CallResult":
        """Call an indexed tool; see ``Calls.call``."""
        with self._creating:
            calls = self._calls
        return calls.call(tool, arguments)

    @property
    def call_outcomes(self) -> Mapping[str, int]:
        """The number of calls made by this process, by outcome; see ``Calls.outcomes``."""
        return self._calls.outcomes if self._has_calls else {}

    @override
    def stats(self) -> Stats:
        coordination, live = self.parts.coordination, self.live
        troubles: list[str] = []
        reports = available(coordination.status.reports, troubles)
        watch = WatchStatus.read(reports or {}) or WatchStatus()
        workers = {name: one for name, one in (reports or {}).items() if name != WATCH}
        # A silent Redis delays each read by its timeout, so only one read waits for it.
        read = _nothing if reports is None else available
        failed = read(coordination.failures.count, troubles)
        waiting = read(self._waiting, troubles) or {}
        taken = read(self._taken, troubles)
        lease = read(coordination.lease.holders, troubles) or Holders()
        if reports is not None:
            troubles += self._silent(workers, watch)
        if watch.error:
            troubles.append(watch.error)
        invalid = watch.configuration_error
        # A problem concerns a discovered file; everything else is adopted.
        if invalid and all(str(one) != invalid for one in watch.problems):
            troubles.append(f"{invalid} The last valid configuration stays active.")
        engine = read_or_none(lambda: live.engine)
        stored = engine.collection if engine else None
        collection = stored.name if stored else watch.collection
        slug = model_slug(collection)
        kinds = engine.keywords.counts("kind") if engine else Counter[str]()
        problems = [
            Problem(severity=Severity.ERROR, message=one) for one in dict.fromkeys(troubles)
        ]
        return Stats(
            index_version=engine.version if engine else 0,
            configuration=watch.configuration or configuration_of(collection),
            collection=collection,
            model="" if slug == WORDS_MODEL.slug else slug,
            items=kinds.total(),
            kinds=dict(sorted(kinds.items())),
            points=read_or_none(live.count) if stored else None,
            missing=live.missing,
            verification=live.verification,
            calls_allowed=self.calls_allowed,
            sources=watch.sources,
            building=watch.building,
            unused=watch.unused,
            queue=Lengths(
                saves=waiting.get("saves"),
                builds=waiting.get("builds"),
                taken=taken,
                failed=failed,
            ),
            workers=workers_of(workers),
            problems=[*problems, *watch.problems],
            errors=len(problems) + watch.errors,
            warnings=watch.warnings,
            watch=_watch(watch, lease) if watch.at else None,
            counters=read(coordination.status.counters, []) or {},
        )

    @property
    def missing(self) -> dict[str, str]:
        """The unavailable parts, and why."""
        return self.live.missing

    @property
    def is_ready(self) -> bool:
        """Whether a search can be answered."""
        return read_or_none(lambda: self.live.engine) is not None

    def request_rebuild(self, queue: "JobQueue", configuration: str) -> Rebuild:
        """Request a new generation of a configuration's collection.

        A request has no effect while a generation is being built.

        Raises:
            StoreError: A store is unavailable.
        """
        store = self.parts.store
        active = store.alias(self.parts.active)
        target = store.alias(next_alias(self.parts.active, configuration))
        if target and target != active:
            return Rebuild(configuration=configuration, generation=generation_of(target))
        slug = model_slug(target or active or "")
        stored = generations(store, self.settings.values.namespace, configuration, slug)
        generation = max(map(generation_of, stored), default=0) + 1
        queue.begin(configuration, generation)
        return Rebuild(configuration=configuration, generation=generation)

    @override
    def close(self) -> None:
        if self._has_calls:
            self._calls.close()

    def _waiting(self) -> Mapping[str, int]:
        """The number of waiting jobs by queue; none wait between two commands."""
        return {"saves": 0, "builds": 0}

    def _taken(self) -> int:
        """The number of jobs that workers are doing."""
        return 0

    def _silent(self, _workers: Mapping[str, Any], _watch: WatchStatus) -> list[str]:
        """Processes that do not report or cannot work; none are expected between two commands."""
        return []

    @property
    def _has_calls(self) -> bool:
        return "_calls" in vars(self)

    @cached_property
    def _skill_vectors(self) -> "SkillVectors":
        from repertory.skill_vectors.vectors import SkillVectors  # noqa: PLC0415 - rarely needed

        folder = self.workspace.directory / expanded(self.settings.values.sandbox or "")
        return SkillVectors(
            folder, lambda: self.parts.store, self.embedding, self.settings.values.namespace
        )

    @cached_property
    def _project_search(self) -> "ProjectSearch":
        from repertory.project_search.folder import Folder  # noqa: PLC0415 - rarely needed
        from repertory.project_search.search import ProjectSearch  # noqa: PLC0415 - rarely needed

        # A team's server may run anywhere, and a home holds more than one project.
        directory = self.workspace.directory
        if self.parts.is_team or not is_project(directory, Path.home()):
            return ProjectSearch(directory)
        return ProjectSearch(directory, Folder(directory, self.settings.data_dir))

    @cached_property
    def _calls(self) -> "Calls":
        from repertory.calling.calls import Calls  # noqa: PLC0415 - rarely needed

        return Calls(self.settings.values, self.workspace)


def _watch(status: WatchStatus, lease: Holders) -> Watch:
    return Watch(
        at=status.at,
        pending=status.pending,
        saves=status.saves,
        watching=status.watching,
        polling=status.polling,
        configuration_error=status.configuration_error,
        holder=lease.holder,
        waiting=lease.waiting,
    )


def available(read: Callable[[], T], troubles: list[str]) -> T | None:
    """What can be read now; otherwise None, and the reason is added to the troubles."""
    try:
        return read()
    except StoreError as error:
        troubles.append(str(error))
        return None


def _nothing(_read: Callable[[], T], _troubles: list[str]) -> T | None:
    """None, instead of what can be read."""
    return None


def read_or_none(read: Callable[[], T]) -> T | None:
    """What can be read now; otherwise None."""
    return available(read, [])
