"""The pages of those who search: search, and one item."""

import os
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from repertory.catalogue.views import split_at_headings
from repertory.errors import UnknownItemError
from repertory.search.lookup import close_to
from repertory.values import Values
from repertory_query.access import STATIC, Access
from repertory_query.pages import insights, openid, sign_in
from repertory_query.pages.choices import Choices
from repertory_query.pages.form import LIMIT, Form, form_of
from repertory_query.pages.page import STATIC_FILES, page, static_file
from repertory_query.pages.schema import rows
from repertory_query.pool import Pool
from repertory_query.searching import AnsweredSearches
from repertory_query.service import Service
from repertory_query.visible import seen_by, visible_to


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


def _home(service: Service) -> str:
    """The prefix of paths that is not shown: the folder that the server runs in."""
    return f"{service.workspace.directory}{os.sep}"
