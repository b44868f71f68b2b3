"""``repertory.open`` and ``repertory.connect``: the Python API of a repertory."""

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypedDict, TypeVar, Unpack

from repertory.backend import Backend
from repertory.catalogue.item import Item
from repertory.errors import RepertoryError, UsageError
from repertory.project.defaults import for_server
from repertory.project.root import located
from repertory.remote import running
from repertory.search.answer import Answer
from repertory.search.explanation import Explanation
from repertory.search.links import Links
from repertory.search.query import filter_of, query_of, texts_of
from repertory.settings import load
from repertory.system.cancellation import waiting
from repertory.system.paths import real_path
from repertory.text import cut
from repertory.values import Values
from repertory.watch_status import SourceState

if TYPE_CHECKING:
    from repertory.calling.result import CallResult
    from repertory.index.keywords.document import Entry

logging.getLogger("repertory").addHandler(logging.NullHandler())  # the application configures logs

P = ParamSpec("P")
T = TypeVar("T")


class Options(TypedDict, total=False):
    """The settings that ``open`` accepts; ``repertory.settings`` describes each."""

    config: str | Path
    mcp_config: str | Path | Sequence[str | Path]
    data_dir: str | Path
    namespace: str
    model: str | Path
    device: Literal["auto", "cpu", "gpu"]
    alpha: float
    name_weight: float
    section_weight: float
    limit: int
    threshold: float
    no_cache: bool
    mcp_timeout: float
    allow_calls: bool
    call_timeout: float
    sandbox: str | Path
    qdrant_url: str
    qdrant_api_key: str


def open_directory(directory: str | Path | None = None, **options: Unpack[Options]) -> "Session":
    """Open the repertory of a directory.

    Other settings are read from the environment and the configuration files. If a server is
    configured, or runs for this directory, requests go to it. Otherwise the index is opened in this
    process, and new and changed files are indexed before a search. Only ``index`` asks MCP servers
    for their tools.

    Args:
        directory: The directory whose skills, tools and documents are searched. None finds the
            project around the working directory, as the command line does.
        options: Settings by name, like ``model="Xenova/all-MiniLM-L6-v2"``.

    Returns:
        A context manager; ``async with`` gives the same methods to await.

    Raises:
        UsageError: The directory or a setting does not exist, or a setting is invalid.
    """
    from repertory.local.one_shot import Repertory  # noqa: PLC0415 - not needed to ask a server

    where = _absolute(directory or ".")
    if not os.path.isdir(where):  # noqa: PTH112 - False also if a link may not be followed
        raise UsageError(f"There is no directory {where}; name one that is there.")
    _check_names(options, Options, "setting")
    given = {name: str(one) if isinstance(one, Path) else one for name, one in options.items()}
    if directory is None:
        settings, project = located(given, where)
        where = project.directory
    else:
        settings = load(given, where)
    if client := running.client(settings, where):
        return Session(client, for_server(settings))
    return Session(Repertory(settings, where), settings.values, process=os.getpid())


def connect(url: str, api_key: str | None = None) -> "Session":
    """Return a session that uses a running server; nothing is sent to it yet.

    Args:
        url: Its URL, like ``http://127.0.0.1:7700``.
        api_key: Its API key, if it requires one. By default REPERTORY_SERVER_API_KEY is used if
            REPERTORY_SERVER_URL is this server or is not set. Your own server on this machine
            needs no key.

    Raises:
        ConfigurationError: The URL or a setting is invalid.
        UsageError: The URL or the key is not a string, or the working directory was deleted.
    """
    _check_texts(url=url, api_key=api_key or "")
    settings = located({}, _absolute("."))[0]
    client = running.client_of(url, settings, api_key or running.key_for(url, settings))
    return Session(client, for_server(settings))


class Filters(TypedDict, total=False):
    """Filters on items; an empty or missing filter allows all.

    Attributes:
        kinds: Only these kinds: ``skill``, ``tool``, ``document``.
        sources: Only these sources.
        servers: Only tools of these MCP servers.
        tags: Only items with one of these tags.
    """

    kinds: Iterable[str]
    sources: Iterable[str]
    servers: Iterable[str]
    tags: Iterable[str]


class SearchOptions(Filters, total=False):
    """The optional parameters of a search; the settings supply a missing number.

    Attributes:
        limit: The maximum number of hits.
        threshold: The minimum confidence of a hit, 0…1.
        alpha: The weight of meaning relative to words, 0…1.
    """

    limit: int | None
    threshold: float | None
    alpha: float | None


class Session:
    """A session with one repertory. A context manager; threads may share it.

    Every method raises a ``RepertoryError`` that says what is wrong and what to do.
    """

    _open: Backend | None = None  # the value if ``__init__`` fails
    _process: int | None = None

    def __init__(self, backend: Backend, defaults: Values, process: int | None = None) -> None:
        """Create a session that uses a backend.

        Args:
            backend: The backend.
            defaults: The values for parameters that a search leaves out.
            process: The only process that may use the backend, because a fork does not have its
                threads; None if forks may use it, too.
        """
        self._open = backend
        self._defaults = defaults
        self._process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "AsyncSession":
        return AsyncSession(self)

    async def __aexit__(self, *_: object) -> None:
        await _awaited(self.close)()

    def close(self) -> None:
        """Release all resources. Closing twice is allowed."""
        if self._is_forked:  # the backend belongs to the parent process
            return
        backend, self._open = self._open, None
        if backend is not None:
            backend.close()

    def __del__(self) -> None:
        backend, self._open = self._open, None
        if backend is None or self._is_forked or sys.is_finalizing():
            return
        # Garbage collection may run this on a thread that holds a lock that ``close`` needs.
        with contextlib.suppress(RuntimeError):  # no thread can start while the program exits
            threading.Thread(target=backend.close, name="forgotten session", daemon=True).start()

    def search(self, query: str, **options: Unpack[SearchOptions]) -> Answer:
        """Find items for a task, some words or a name; each hit has a confidence and a reason.

        Args:
            query: The words, the task or the name to search for.
            options: ``limit``, ``threshold``, ``alpha``, and the filters ``kinds``, ``sources``,
                ``servers`` and ``tags``; see ``SearchOptions``.
        """
        _check_texts(query=query)
        _check_names(options, SearchOptions)
        return self._indexed().search(query_of(self._defaults, query, **options))

    def explain(self, query: str, item: str, **options: Unpack[SearchOptions]) -> Explanation:
        """Explain why a search returns an item, or why not.

        Args:
            query: The search to explain.
            item: The item's id, or its name if no other item has it.
            options: As for ``search``.
        """
        _check_texts(query=query, item=item)
        _check_names(options, SearchOptions)
        return self._indexed().explain(query_of(self._defaults, query, **options), item)

    def items(self, **where: Unpack[Filters]) -> "list[Entry]":
        """The indexed items by id, without texts and schemas; see ``Filters``."""
        _check_names(where, Filters)
        return list(self._indexed().entries(filter_of(**where)))

    def item(self, item: str) -> Item:
        """One item, with its text and schemas, by its id or its unique name.

        Raises:
            UnknownItemError: No item matches, or several do.
        """
        _check_texts(item=item)
        return self._indexed().item(item)

    def items_by_id(self, ids: Iterable[str]) -> dict[str, Item]:
        """Several complete items by their ids; missing ones are left out.

        They are requested in bulk, which is not recorded as use of the items.
        """
        wanted = texts_of("ids", ids)
        return self._indexed().items(wanted)

    def links(self, item_id: str) -> Links:
        """The tools that a skill needs, or the skills that need a tool; see ``Backend.links``."""
        _check_texts(item_id=item_id)
        return self._indexed().links(item_id)

    def call(self, tool_id: str, arguments: Mapping[str, Any] | None = None) -> "CallResult":
        """Call a tool of an MCP server, if calls are allowed (``allow_calls=True``).

        Args:
            tool_id: ``server__tool``.
            arguments: The arguments, as the tool's schema describes them.
        """
        _check_texts(tool_id=tool_id)
        return self._indexed().call(tool_id, arguments or {})

    def tools_module(self, *names: str) -> str:
        """The module of ``repertory types``: types of tools and methods that call them.

        Args:
            names: Servers whose tools to include, and ids of single tools; all tools if empty.
        """
        from repertory.typescript.module import module  # noqa: PLC0415 - for this alone
        from repertory.typescript.selection import select_tools  # noqa: PLC0415 - as above

        for name in names:
            _check_texts(name=name)
        ids = select_tools(self.items(kinds=["tool"]), names)
        return module(list(self._backend.items(ids).values()), self._backend.gateway).text

    def search_skills(self, query: str) -> str:
        """The function ``Vector.SearchSkills``: a JSON string of paths and scores."""
        from repertory.functions.vector import search_skills  # noqa: PLC0415 - for this alone

        return search_skills(self._backend, query)

    def vector_update(self, filepath: str) -> str:
        """The function ``Vector.VectorUpdate``: ``OK`` or an error message."""
        from repertory.functions.vector import vector_update  # noqa: PLC0415 - for this alone

        return vector_update(self._backend, filepath)

    def discover_skills(self, query: str, limit: int = 5) -> dict[str, Any]:
        """The function ``skill.discovery.search``: ``{"results": [{"skill_id", …}]}``."""
        from repertory.functions.discovery import SEARCH  # noqa: PLC0415 - for this alone

        found: dict[str, Any] = SEARCH.call(self._indexed(), {"query": query, "limit": limit})
        return found

    def search_project(  # the function's own arguments, with Python names
        self,
        search_query: str,
        *,
        search_type: str = "all",
        fuzzy_search: bool = False,
        max_results: int = 20,
        threshold: float = 0.3,
    ) -> dict[str, Any]:
        """The function ``search``: ``{"success", "content", "totalResults"}`` or ``{"error"}``."""
        from repertory.functions.project import search_project  # noqa: PLC0415 - for this alone

        backend = self._backend
        with contextlib.suppress(RepertoryError):  # files can be searched without an index
            backend.ensure_indexed()
        return search_project(
            backend,
            {
                "searchQuery": search_query,
                "searchType": search_type,
                "fuzzySearch": fuzzy_search,
                "maxResults": max_results,
                "threshold": threshold,
            },
        )

    def index(self) -> int:
        """Bring the index up to date with the sources; a server does so by itself.

        Returns:
            The number of indexed items.
        """
        return self._backend.refresh().items

    def sources(self) -> list[SourceState]:
        """The state of each source when it was last read."""
        return self._indexed().stats().sources

    def problems(self) -> list[str]:
        """The problems with sources and items, each with its file and line."""
        return [str(problem) for problem in self._backend.stats().problems]

    @property
    def _backend(self) -> Backend:
        """The backend; UsageError if the session is closed, or in a fork."""
        if self._is_forked:
            raise UsageError(
                "This session was opened before this process was forked; open another one here."
            )
        if self._open is None:
            raise UsageError("This session is closed; open another one.")
        return self._open

    def _indexed(self) -> Backend:
        """The backend, after it has indexed changes."""
        backend = self._backend
        backend.ensure_indexed()
        return backend

    @property
    def _is_forked(self) -> bool:
        return self._process not in (None, os.getpid())


class AsyncSession:
    """A session whose methods are awaited; each runs on a thread and can be cancelled."""

    def __init__(self, session: Session) -> None:
        self.search = _awaited(session.search)
        self.explain = _awaited(session.explain)
        self.links = _awaited(session.links)
        self.items = _awaited(session.items)
        self.item = _awaited(session.item)
        self.items_by_id = _awaited(session.items_by_id)
        self.call = _awaited(session.call)
        self.tools_module = _awaited(session.tools_module)
        self.search_skills = _awaited(session.search_skills)
        self.vector_update = _awaited(session.vector_update)
        self.discover_skills = _awaited(session.discover_skills)
        self.search_project = _awaited(session.search_project)
        self.index = _awaited(session.index)
        self.sources = _awaited(session.sources)
        self.problems = _awaited(session.problems)


def _absolute(directory: str | Path) -> Path:
    """The absolute path of a directory.

    Raises:
        UsageError: It is not a valid path, or is relative to a working directory that was deleted.
    """
    try:
        return Path(real_path(Path(directory).expanduser()))
    except FileNotFoundError:
        raise UsageError("The current directory has been deleted: go to another one.") from None
    except (TypeError, RuntimeError):  # not a path, or the home of an unknown user
        raise UsageError(f"There is no directory {directory!r}; name one that is there.") from None


def _check_texts(**given: object) -> None:
    """Check that arguments are strings; UsageError if one is not."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise UsageError(f"{name} is {cut(repr(value), 100)}; it must be a text.")


def _check_names(given: Mapping[str, object], known: type, what: str = "parameter") -> None:
    """Check the names of arguments; UsageError if one is not a key of a ``TypedDict``."""
    for name in given:
        if name not in known.__annotations__:
            names = ", ".join(known.__annotations__)
            raise UsageError(f"There is no {what} {name!r}; there are {names}.")


def _awaited(method: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        from anyio import to_thread  # noqa: PLC0415 - only if it is awaited

        with waiting():
            return await to_thread.run_sync(
                partial(method, *args, **kwargs), abandon_on_cancel=True
            )

    run.__doc__ = method.__doc__
    return run
