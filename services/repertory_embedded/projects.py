"""The projects that one server answers for: its own, and those that other processes requested.

A process requests a project by ``POST /projects``, and keeps reading the answer while it needs the
project. When this connection ends, for any reason, the process no longer uses the project, and a
project without users is closed. When the server ends, it closes first the projects and then the
connections, so that another process can take the projects over at once.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from typing import Protocol, Self

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from repertory.errors import RepertoryError
from repertory.system.addresses import is_loopback
from repertory.text import is_same_secret
from repertory.wire import PROJECTS, WantedProject
from repertory_query.access.limits import bounded
from repertory_query.access.origins import check_origin
from repertory_query.backend.client_disconnect import while_connected
from repertory_query.problems import problem, refusal

_BELOW = re.compile(rf"(?P<root>{PROJECTS}/(?P<key>[0-9a-f]+))(?P<rest>/.*)?", re.DOTALL)
_HEADERS = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]

_log = logging.getLogger(__name__)


class Project(Protocol):
    """A project that is or can be opened.

    Attributes:
        key: Its part of the URL; see ``Workspace.directory_key``.
    """

    key: str

    def serves(self, other: Self) -> bool:
        """Whether this project can answer for another one of the same directory."""
        ...

    def ignored_settings(self, other: Self) -> list[str]:
        """The settings given to another project that have no effect if this one answers for it."""
        ...

    def open(self, path: str) -> AbstractContextManager[Starlette]:
        """The application of this project, below a path of the server. May block.

        Raises:
            RepertoryError: It cannot be opened; another process may have it.
        """
        ...


class Projects:
    """The application of a server of several projects.

    The server's own project answers at ``/``, and each project at ``/projects/KEY``.

    Args:
        app: The application of the server's own project.
        own: The server's own project.
        secret: The bearer token that is needed to request a project.
        find: Returns the requested project; may block, and raise a RepertoryError.
    """

    def __init__(
        self, app: ASGIApp, own: Project, secret: str, find: Callable[[WantedProject], Project]
    ) -> None:
        self._app = app
        self._own = own
        self._secret = secret
        self._find = find
        self._open: dict[str, _Open] = {}
        self._ending = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request or the lifespan."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["path"] == PROJECTS:
            await self._answer(scope, receive, send)
        else:
            await self._pass_on(scope, receive, send)

    def end(self) -> None:
        """Close the projects of other processes. Call it on the event loop."""
        self._ending.set()

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application of its project."""
        found = _BELOW.fullmatch(scope["path"])
        app = self._app_of(found["key"]) if found else None
        if not found or app is None:
            await self._app(scope, receive, send)
        elif not found["rest"]:
            await RedirectResponse(f"{found['root']}/", 307)(scope, receive, send)
        else:
            await app({**scope, "root_path": found["root"]}, receive, send)

    def _app_of(self, key: str) -> ASGIApp | None:
        if key == self._own.key:
            return self._app
        found = self._open.get(key)
        return found.app if found else None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a project for another process, until that process or this one ends."""
        try:
            wanted = await self._wanted(scope, receive)
            project = await asyncio.to_thread(self._find, wanted)
            async with self._opened(project) as (path, ignored):
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                line = msgspec.json.encode({"path": path, "ignored_settings": ignored}) + b"\n"
                await send({"type": "http.response.body", "body": line, "more_body": True})
                with suppress(ClientDisconnect):
                    await while_connected(receive, self._ending.wait())
            await send({"type": "http.response.body"})
        except HTTPException as error:
            await refusal(error)(scope, receive, send)
        except RepertoryError as error:
            await problem(409, str(error), error=type(error).__name__)(scope, receive, send)

    async def _wanted(self, scope: Scope, receive: Receive) -> WantedProject:
        """The project requested by a process of the same user on the same machine.

        Raises:
            HTTPException: 403 for other callers, 405 for other methods, 422 for an invalid body,
                503 while this server ends.
        """
        request = Request(scope, receive)
        if request.method != "POST":
            raise HTTPException(405, "Send a POST.", {"Allow": "POST"})
        check_origin(request)
        client, server = request.client, scope["server"]  # the same address: the same machine
        is_near = client and (is_loopback(client.host) or (server and client.host == server[0]))
        given = request.headers.get("authorization", "")
        if not (is_near and is_same_secret(given, f"Bearer {self._secret}")):
            raise HTTPException(403, "Only the user who runs this server may add projects to it.")
        if self._ending.is_set():
            raise HTTPException(503, "This server is ending; ask again.", {"Retry-After": "1"})
        body = await Request(scope, bounded(scope, receive)).body()
        try:
            found = json.loads(body)  # not msgspec, because names may be invalid Unicode
            return msgspec.convert(found, WantedProject)
        except ValueError as error:
            raise HTTPException(422, "The body names no project.") from error

    @asynccontextmanager
    async def _opened(self, project: Project) -> AsyncIterator[tuple[str, list[str]]]:
        """Use a project, which is opened for its first user and closed after its last.

        Yields its path, and the settings of this user that have no effect there.

        Raises:
            HTTPException: 409 if it is open with settings that do not fit.
            RepertoryError: It cannot be opened.
        """
        while (found := self._open.get(project.key)) and found.is_closing:
            await found.wait()
        taken = self._own if project.key == self._own.key else found.project if found else project
        if not taken.serves(project):
            raise HTTPException(
                409, "This server serves the directory with other settings; use the same settings."
            )
        ignored = [] if taken is project else taken.ignored_settings(project)
        if taken is self._own:
            yield "", ignored
            return
        if found is None:
            found = self._open[project.key] = _Open(project, self._forget)
        found.users += 1
        try:
            await asyncio.shield(found.ready)
            yield found.path, ignored
        finally:
            found.users -= 1
            if not found.users:
                found.close()
            if found.is_closing or self._ending.is_set():
                await found.wait()

    def _forget(self, closed: "_Open") -> None:
        del self._open[closed.project.key]


class _Open:
    """A project of other processes, from its opening to its closing.

    Args:
        project: The project.
        closed: Called with this when the project is closed.

    Attributes:
        app: Its application, while it is open.
        path: The path at which it answers.
        users: The number of processes that use it.
        ready: Done once the project is open, or with the error if it cannot be opened.
    """

    def __init__(self, project: Project, closed: Callable[["_Open"], None]) -> None:
        self.project = project
        self.app: ASGIApp | None = None
        self.path = f"{PROJECTS}/{project.key}"
        self.users = 0
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closed = closed
        self._unwanted = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @property
    def is_closing(self) -> bool:
        """Whether no process uses it any more, or it could not be opened."""
        return self._unwanted.is_set()

    def close(self) -> None:
        """Start closing it."""
        self._unwanted.set()

    async def wait(self) -> None:
        """Wait until it is closed."""
        await asyncio.shield(self._task)

    async def _run(self) -> None:
        # One task enters and leaves everything, as a task group of the application requires.
        context = self.project.open(self.path)
        try:
            app = await asyncio.to_thread(context.__enter__)
            try:
                async with app.router.lifespan_context(app):
                    self.app = app
                    self.ready.set_result(None)
                    _log.info("project_opened", extra={"project": self.project.key})
                    await self._unwanted.wait()
                    self.app = None
            finally:
                await asyncio.to_thread(context.__exit__, None, None, None)
        # A boundary: an error of one project must not affect the others.
        except Exception as error:
            if self.ready.done():
                _log.exception("project_failed", extra={"project": self.project.key})
            else:
                self.ready.set_exception(error)
        finally:
            self._unwanted.set()
            self._closed(self)
            _log.info("project_closed", extra={"project": self.project.key})
