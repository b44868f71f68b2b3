"""The explanation why a search shows an item or not: a page, and a part of the results page."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.keys import Scope
from repertory.values import Values
from repertory_query.api.requests import parameters_of
from repertory_query.backend.answering import AnsweredSearches
from repertory_query.pages.page import PageRoute, page
from repertory_query.pages.search_form import Form
from repertory_query.records.actions import Action

PATH = "/why"


class ExplanationForm(Form, frozen=True, kw_only=True, omit_defaults=True):
    """A search, and the item to explain: its id, or its unique name."""

    item: str


def routes(searches: AnsweredSearches, defaults: Callable[[], Values]) -> list[BaseRoute]:
    """The route."""

    async def why(request: Request) -> Response:
        """Explain a result; without a query, show a form for it."""
        form = parameters_of(request, ExplanationForm, is_form=True)
        found = None
        if form.q.strip():
            query = form.query(defaults())
            found = await searches.explanation(query, form.item, request.state.caller)
        return page(
            request,
            "explained.html" if form.part else "why.html",
            form=form,
            found=found,
        )

    return [
        PageRoute(
            "GET",
            PATH,
            why,
            action=Action("explain", "item", has_text=True, needs="q"),
            scope=Scope.READ,
        )
    ]
