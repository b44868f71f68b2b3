"""The server as seen by callers who may see only some of its sources.

Numbers that count all items, such as those of the queue, are left out if anything is hidden from
the caller.
"""

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from msgspec.structs import replace
from typing_extensions import override

from repertory.errors import CallsOffError, NothingIndexedError, UnknownItemError
from repertory.groups import may_see
from repertory.indexing.item_problems import problems_between
from repertory.local.backend import read_or_none
from repertory.notices import INVALID_CONFIGURATION
from repertory.search.engine import SearchEngine
from repertory.sources.source import Problem, Severity
from repertory.stats import Contents, Jobs, Lengths, Stats, Watch
from repertory.system.paths import is_inside, real_path
from repertory.watch_status import SourceState
from repertory_query.backend.served_index import ServedIndex

if TYPE_CHECKING:  # not needed by a search
    from repertory.calling.result import CallResult
    from repertory.project_search.query import ProjectAnswer, ProjectQuery
    from repertory.skill_files import SkillFiles
    from repertory.wire import SkillMatch
    from repertory_query.backend.service import Service

UNSURE = "At the moment, this server does not know which of its files you may see."
EVERY_SOURCE = (
    "Files of the sandbox can only be indexed by callers who may see every source; ask the person "
    "who runs this server."
)


class VisibleService(ServedIndex):
    """A server as seen by callers with some groups. Thread-safe.

    Args:
        whole: The server.
        groups: The callers' groups.
    """

    def __init__(self, whole: "Service", groups: frozenset[str]) -> None:
        super().__init__(whole.parts, whole.live, whole.recent)
        self._whole = whole
        self._groups = groups
        self._known: tuple[tuple[object, ...], Counter[str], list[Problem]] | None = None

    @property
    @override
    def engine(self) -> SearchEngine:
        return self.live.subsets.of(self._groups)

    @property
    def visible(self) -> frozenset[str]:
        """The names of the visible sources; StoreError if they are not known."""
        try:
            return self.live.subsets.visible(self._groups)
        except NothingIndexedError:
            return self.live.sources.visible(self._groups)

    @property
    def _hides(self) -> bool:
        """Whether any source is hidden; StoreError if that is not known."""
        try:
            return self.engine.hides
        except NothingIndexedError:
            return not self.visible.issuperset(self.live.sources.names)

    @override
    def source_states(self) -> Sequence[SourceState]:
        visible = self.visible
        return [one for one in super().source_states() if one.name in visible]

    @override
    def contents(self) -> Contents:
        return replace(super().contents(), changes_allowed=not self._hides)

    @override
    def skill_files(self, ids: Sequence[str]) -> "dict[str, SkillFiles]":
        from repertory.skill_files import SkillFiles, files_of  # noqa: PLC0415 - rarely needed

        items = self.items(ids)
        hidden = self._hidden_within({item.source for item in items.values()})
        if hidden is None:
            return dict.fromkeys(items, SkillFiles(withheld=UNSURE))
        return {item_id: files_of(item, hidden[item.source]) for item_id, item in items.items()}

    @override
    def skill_file(self, item_id: str, place: str) -> bytes:
        from repertory.skill_files import content_of  # noqa: PLC0415 - rarely needed

        item = self.item(item_id)
        hidden = self._hidden_within({item.source})
        if hidden is None:
            raise UnknownItemError(f"{item_id[:200]!r} has no file {place[:200]!r} here: {UNSURE}")
        return content_of(item, place, hidden[item.source])

    def _hidden_within(self, sources: Collection[str]) -> dict[str, list[str]] | None:
        """The real paths of hidden sources within the folder of each source, by source name.

        Their files belong to the inner source, not to the outer one. None if a path is unknown.
        """
        if not self._hides:
            return {source: [] for source in sources}
        visible = self.visible
        # The states known to the search have no location. They stay while the report is missing.
        states = {one.name: one for one in self.live.sources.states}
        states |= {one.name: one for one in self._whole.source_states()}
        # The location of a server is a command or a URL.
        hidden = [
            one.location for one in states.values() if one.name not in visible and one.type != "mcp"
        ]
        if not all(hidden):
            return None
        paths = [*filter(None, map(_real, hidden))]
        folders = {name: _real(one.location) for name, one in states.items()}
        return {source: _below(folders.get(source) or os.sep, paths) for source in sources}

    @override
    def similar_skills(self, query: str) -> "list[SkillMatch]":
        if not self._hides:
            return self._whole.similar_skills(query)
        return self._whole.skill_vectors.search(query, self.engine, with_written=False)

    @override
    def update_vector(self, filepath: str) -> None:
        if self._hides:
            raise CallsOffError(EVERY_SOURCE)
        self._whole.update_vector(filepath)

    @override
    def search_project(self, query: "ProjectQuery") -> "ProjectAnswer":
        if not self._hides:
            return self._whole.search_project(query)
        # The source of a file on disk is not known, so only the catalogue is searched.
        return self._whole.catalogue_search(self.visible).search(self.engine, query)

    @override
    def call(self, tool_id: str, arguments: Mapping[str, Any]) -> "CallResult":
        self._check_calls()
        return self._whole.call_tool(self.tool(tool_id), arguments)

    @property
    @override
    def call_outcomes(self) -> Mapping[str, int]:
        hides = read_or_none(lambda: self._hides)
        return self._whole.call_outcomes if hides is False else {}

    @override
    def stats(self) -> Stats:
        whole = self._whole.stats()
        known = read_or_none(lambda: self.visible) or frozenset()
        visible = known.intersection(  # the report may be newer than the searched index
            one.name for one in whole.sources if may_see(self._groups, one.visible_to)
        )
        hides = read_or_none(lambda: self._hides) is not False or len(visible) < len(whole.sources)
        watch = whole.watch
        if watch and watch.configuration_error:
            watch = replace(watch, configuration_error=INVALID_CONFIGURATION)
        shown = replace(
            whole,
            sources=[replace(one, visible_to=()) for one in whole.sources],
            problems=[_plainer(one, whole.watch) for one in whole.problems],
            watch=watch,
        )
        return self._reduced(shown, visible) if hides else shown

    def _reduced(self, whole: Stats, visible: frozenset[str]) -> Stats:
        """The statistics without hidden items and without numbers that include them."""
        sources = [one for one in whole.sources if one.name in visible]
        is_whole = not any(one.error or one.is_starting or one.stale for one in sources)
        kinds, between = self._of_items([one.name for one in sources], are_all=is_whole)
        problems = [*(one for one in whole.problems if _is_about(one, visible)), *between]
        watch = whole.watch
        return replace(
            whole,
            configuration="",
            collection="",
            items=kinds.total(),
            kinds=dict(sorted(kinds.items())),
            points=None,
            verification=None,
            sources=sources,
            building=None,
            unused=[],
            queue=Lengths(saves=None, builds=None, taken=None, failed=None),
            workers=[],
            problems=problems,
            errors=sum(one.severity is Severity.ERROR for one in problems),
            warnings=sum(one.severity is Severity.WARNING for one in problems),
            watch=watch and _watch(watch, visible),
            counters={},
        )

    def _of_items(
        self, names: Sequence[str], *, are_all: bool
    ) -> tuple[Counter[str], list[Problem]]:
        """The visible items by kind, and the problems between them, cached until the index changes.

        Both go through all entries, and a dashboard requests statistics every few seconds.
        """
        engine = read_or_none(lambda: self.engine)
        key = (engine and ref(engine), *names, are_all)
        known = self._known
        if known is None or known[0] != key:
            entries = [*engine.keywords.all()] if engine else []
            kinds = Counter(entry.kind.value for entry in entries)
            known = self._known = key, kinds, problems_between(entries, names, are_all=are_all)
        return known[1:]

    def jobs(self) -> Jobs:
        """All jobs, or, if anything is hidden, only the failed ones whose items are all visible."""
        jobs = self._whole.jobs()
        if not self._hides:
            return jobs
        index = self.engine.keywords
        failed = [
            one
            for one in jobs.failed
            if one.items and all(index.row_of(item) is not None for item in one.items)
        ]
        return Jobs(waiting={}, taken=None, running=[], failed=failed)


def _real(location: str) -> str:
    """The real path of a location; empty if it is not an absolute path."""
    return real_path(location) if os.path.isabs(location) else ""  # noqa: PTH117 - of strings


def _below(folder: str, paths: Sequence[str]) -> list[str]:
    """The paths below a folder, without the folder itself."""
    return [path for path in paths if path != folder and is_inside(path, folder)]


def _watch(watch: Watch, visible: frozenset[str]) -> Watch:
    """The status of the watch service without hidden sources."""
    return replace(
        watch,
        pending=None,
        saves=None,
        watching=[name for name in watch.watching if name in visible],
        polling={name: why for name, why in watch.polling.items() if name in visible},
    )


def _is_about(problem: Problem, visible: frozenset[str]) -> bool:
    """Whether a problem is only about visible sources, or about the server."""
    if problem.sources:
        return visible.issuperset(problem.sources)
    return problem.severity is Severity.ERROR and not (problem.path or problem.item)


def _plainer(problem: Problem, watch: Watch | None) -> Problem:
    """A problem without the configuration's error message, which may name any source."""
    invalid = watch.configuration_error if watch else ""
    if not invalid or not problem.message.startswith(invalid):
        return problem
    return replace(problem, message=INVALID_CONFIGURATION + problem.message.removeprefix(invalid))
