"""The state of the server, now and over the last day, and its failed jobs."""

import time
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.errors import StoreError
from repertory.keys import Scope
from repertory.local.backend import read_or_none
from repertory.stats import Jobs
from repertory_query.api.requests import parameters_of
from repertory_query.backend.caller_view import jobs_for, visible_to
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.pages.charts import charts_of
from repertory_query.pages.item import home_of
from repertory_query.pages.page import PageRoute, page, posted_fields, redirection
from repertory_query.records.actions import Action
from repertory_query.records.history import Span

PATH = "/status"
WINDOWS = {1: 60, 6: 72, 24: 96}  # the number of spans for each choice of hours


class StatusParameters(msgspec.Struct):
    """The query parameters of the page.

    Attributes:
        hours: The shown hours of the past; one of ``WINDOWS``.
        empty: Whether to show only recent searches without results.
        part: Whether to omit the frame of the page.
    """

    hours: int = 1
    empty: bool = False
    part: bool = False

    @property
    def window(self) -> int:
        """The hours; one if there is no such choice."""
        return self.hours if self.hours in WINDOWS else 1


def routes(service: Service, pool: Pool) -> list[BaseRoute]:
    """The routes."""

    async def status(request: Request) -> Response:
        """Show the state of the server."""
        shown = parameters_of(request, StatusParameters, is_form=True)
        return await pool.run(partial(_status, request, service, shown))

    async def history(request: Request) -> Response:
        """Show the numbers behind the charts."""
        hours = parameters_of(request, StatusParameters, is_form=True).window
        spans = [one for one in _spans(service, hours) if one.is_known]
        return page(request, "history.html", spans=spans[::-1], hours=hours, windows=list(WINDOWS))

    async def retry(request: Request) -> Response:
        """Retry one failed job, or all of them."""
        sent = await posted_fields(request)
        ids = [sent["id"]] if sent.get("id") else None
        await pool.run(partial(service.retry, ids))
        return redirection(request, PATH)

    async def rebuild(request: Request) -> Response:
        """Start building a new index beside the active one."""
        await pool.run(service.rebuild)
        return redirection(request, PATH)

    return [
        PageRoute("GET", PATH, status, action=None, scope=Scope.READ),
        PageRoute("GET", f"{PATH}/history", history, action=None, scope=Scope.ADMIN),
        PageRoute("POST", f"{PATH}/retry", retry, action=Action("retry"), scope=Scope.ADMIN),
        PageRoute(
            "POST",
            f"{PATH}/rebuild",
            rebuild,
            action=Action("rebuild"),
            scope=Scope.ADMIN,
        ),
    ]


def _status(request: Request, service: Service, shown: StatusParameters) -> Response:
    caller = request.state.caller
    try:
        jobs: Jobs | None = jobs_for(caller, service)
    except StoreError:  # the statistics say why
        jobs = None
    may_all = Scope.ADMIN in caller.scopes
    recent = service.recent.newest_first() if may_all else []
    if shown.empty:
        recent = [one for one in recent if not one.hits]
    return page(
        request,
        "live.html" if shown.part else "status.html",
        stats=visible_to(caller, service).stats(),
        jobs=jobs,
        home=home_of(service),
        may_all=may_all,
        recent=recent,
        only_empty=shown.empty,
        waiting=read_or_none(service.parts.reviews.count) if may_all else 0,
        charts=charts_of(_spans(service, shown.window), service.history.latest) if may_all else (),
        hours=shown.window,
        windows=list(WINDOWS),
    )


def _spans(service: Service, hours: int) -> list[Span]:
    """The last hours, rounded up to a whole span, so that charts do not change all the time."""
    number = WINDOWS[hours]
    length = hours * 3_600 / number
    end = (time.time() // length + 1) * length
    return service.history.spans(end - hours * 3_600, end, number)
