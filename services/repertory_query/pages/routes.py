"""The pages' addresses: search, one item, how the server is."""

import os
from functools import partial
from typing import Any

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from repertory.catalogue.views import split_at_headings
from repertory.errors import StoreError, UnknownItemError
from repertory.keys import Scope
from repertory.search.identify import close_to
from repertory.search.render import answer_of
from repertory.settings import Values
from repertory_query.access import STATIC, Access, Admin
from repertory_query.pages import sign_in
from repertory_query.pages.choices import Choices
from repertory_query.pages.form import Asked, Form
from repertory_query.pages.page import STATIC_FILES, page, static_file
from repertory_query.pages.schema import rows
from repertory_query.pool import Pool
from repertory_query.searching import Searches
from repertory_query.service import Service


def router(
    service: Service, searches: Searches, pool: Pool, access: Access, defaults: Values
) -> APIRouter:
    """The routes, which are not part of the API.

    Args:
        service: The running server.
        searches: Answers queries.
        pool: For what may block but is no search.
        access: Who may see the pages, to sign in.
        defaults: The settings that hold for what a form leaves out.
    """
    routes = APIRouter(include_in_schema=False)
    routes.include_router(sign_in.router(access))
    all_choices = Choices()
    usual = Form().query(defaults)

    @routes.get("/")
    async def search(request: Request, form: Asked, part: bool = False) -> Response:
        """Search, or look through what there is."""
        engine = service.engine
        choices = all_choices.known(engine) or await pool.run(partial(all_choices.of, engine))
        answer = listed = None
        if form.q.strip():
            found = await searches.answer(form.query(defaults))
            answer = answer_of(msgspec.json.decode(found))
        elif form.where:
            listed = await pool.run(partial(service.entries, form.where))
        return page(
            request,
            "results.html" if part else "search.html",
            form=form,
            usual=usual,
            choices=choices,
            answer=answer,
            listed=listed,
            total=len(engine.keywords or ()),
            home=_home(service),
        )

    @routes.get("/view/{item_id:path}")
    async def view(request: Request, item_id: str, section: str = "") -> Response:
        """Show an item whole, at the section that matched."""
        return await pool.run(lambda: _item(request, service, item_id, section))

    @routes.get("/status")
    async def status(request: Request, part: bool = False) -> Response:
        """Show how the server is."""
        return await pool.run(lambda: _status(request, service, part=part))

    @routes.post("/status/retry")
    async def retry(_: Admin, sent: sign_in.Fields) -> Response:
        """Put a failed job, or all of them, back on the queue."""
        ids = [sent["id"]] if sent.get("id") else None
        await pool.run(partial(service.retry, ids))
        return RedirectResponse("/status", 303)

    @routes.get(STATIC + "{name}")
    async def static(name: str) -> Response:
        """Give one of the files that pages are made with."""
        if name not in STATIC_FILES:
            raise HTTPException(404)
        return static_file(name)

    return routes


def _item(request: Request, service: Service, item_id: str, section: str) -> Response:
    try:
        item = service.item(item_id)
    except UnknownItemError:
        close = close_to(service.engine.keywords, item_id)
        return page(request, "unknown.html", 404, item_id=item_id, close=close)
    schemas = {"Parameters": item.input_schema, "Result": item.output_schema}
    return page(
        request,
        "item.html",
        item=item,
        schemas=[(title, one, rows(one)) for title, one in schemas.items() if one],
        sections=split_at_headings(item.body),
        matched=section,
        home=_home(service),
        calls_allowed=service.calls_allowed,
    )


def _status(request: Request, service: Service, *, part: bool) -> Response:
    try:
        jobs: dict[str, Any] | None = service.jobs()
    except StoreError:  # the statistics say why
        jobs = None
    may_all = Scope.ADMIN in request.state.caller.scopes
    return page(
        request,
        "live.html" if part else "status.html",
        stats=service.stats(),
        jobs=jobs,
        home=_home(service),
        may_all=may_all,
        recent=service.recent.newest_first() if may_all else (),
    )


def _home(service: Service) -> str:
    """What paths begin with that are shown from where the server runs."""
    return f"{service.workspace.directory}{os.sep}"
