"""The pages: search, one item, the state of the server."""

import os
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from repertory.catalogue.views import split_at_headings
from repertory.errors import StoreError, UnknownItemError
from repertory.keys import Scope
from repertory.local import available
from repertory.search.lookup import close_to
from repertory.stats import Jobs
from repertory.values import Values
from repertory_query.access import STATIC, Access, require
from repertory_query.pages import insights, openid, review, sign_in
from repertory_query.pages.choices import Choices
from repertory_query.pages.form import LIMIT, Form, form_of
from repertory_query.pages.page import STATIC_FILES, page, root_of, static_file
from repertory_query.pages.schema import rows
from repertory_query.pool import Pool
from repertory_query.searching import AnsweredSearches
from repertory_query.service import Service
from repertory_query.visible import jobs_for, seen_by, visible_to


def routes(
    service: Service, searches: AnsweredSearches, pool: Pool, access: Access, defaults: Values
) -> list[BaseRoute]:
    """The routes, which are not part of the API.

    Args:
        service: The running server.
        searches: Answers queries.
        pool: The threads of blocking calls that are no searches.
        access: Access control, to sign in.
        defaults: The settings for fields that a form leaves out.
    """
    all_choices = Choices()
    usual = Form(limit=LIMIT, threshold=defaults.threshold, alpha=defaults.alpha)

    async def search(request: Request) -> Response:
        """Search, or browse."""
        form, caller = form_of(request), request.state.caller
        seen = seen_by(caller, service)
        engine = service.engine if seen is service else await pool.run(lambda: seen.engine)
        choices = all_choices.known(engine) or await pool.run(partial(all_choices.of, engine))
        answer = listed = None
        if form.q.strip():
            answer = (await searches.answer(form.query(defaults), caller)).answer
        elif form.where:
            listed = await pool.run(partial(visible_to(caller, service).entries, form.where))
        return page(
            request,
            "results.html" if form.part else "search.html",
            form=form,
            usual=usual,
            choices=choices,
            answer=answer,
            listed=listed,
            total=len(engine.keywords or ()),
            home=_home(service),
        )

    async def view(request: Request) -> Response:
        """Show an item whole, at the section that matched."""
        item_id, section = request.path_params["item_id"], request.query_params.get("section", "")
        return await pool.run(lambda: _item(request, service, item_id, section))

    async def status(request: Request) -> Response:
        """Show the state of the server."""
        part = form_of(request).part
        return await pool.run(lambda: _status(request, service, part=part))

    async def retry(request: Request) -> Response:
        """Try a failed job, or all of them, again."""
        require(request.state.caller, Scope.ADMIN)
        sent = await sign_in.fields(request)
        ids = [sent["id"]] if sent.get("id") else None
        await pool.run(partial(service.retry, ids))
        return RedirectResponse(f"{root_of(request)}/status", 303)

    async def static(request: Request) -> Response:
        """Send one of the files of the pages."""
        name = request.path_params["name"]
        if name not in STATIC_FILES:
            raise HTTPException(404)
        return static_file(name)

    return [
        *sign_in.routes(access),
        *openid.routes(access),
        Route("/", search),
        Route("/view/{item_id:path}", view),
        Route("/status", status),
        Route("/status/retry", retry, methods=["POST"]),
        *review.routes(service.parts.reviews, pool),
        *insights.routes(service, pool),
        Route(STATIC + "{name}", static),
    ]


def _item(request: Request, service: Service, item_id: str, section: str) -> Response:
    try:
        backend = visible_to(request.state.caller, service)
        item, links = backend.item(item_id), backend.links(item_id)
    except UnknownItemError:
        close = close_to(seen_by(request.state.caller, service).engine.keywords, item_id)
        return page(request, "unknown.html", 404, item_id=item_id, close=close)
    schemas = {"Parameters": item.input_schema, "Result": item.output_schema}
    return page(
        request,
        "item.html",
        item=item,
        links=links,
        schemas=[(title, one, rows(one)) for title, one in schemas.items() if one],
        sections=split_at_headings(item.body),
        matched=section,
        home=_home(service),
        calls_allowed=service.calls_allowed,
    )


def _status(request: Request, service: Service, *, part: bool) -> Response:
    caller = request.state.caller
    try:
        jobs: Jobs | None = jobs_for(caller, service)
    except StoreError:  # the statistics say why
        jobs = None
    may_all = Scope.ADMIN in caller.scopes
    return page(
        request,
        "live.html" if part else "status.html",
        stats=visible_to(caller, service).stats(),
        jobs=jobs,
        home=_home(service),
        may_all=may_all,
        recent=service.recent.newest_first() if may_all else (),
        waiting=available(service.parts.reviews.count, []) if may_all else 0,
    )


def _home(service: Service) -> str:
    """The prefix of paths that is not shown: the folder that the server runs in."""
    return f"{service.workspace.directory}{os.sep}"
