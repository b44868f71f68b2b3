"""The content of the search page: results with excerpts and labels, or the catalogue."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.keys import Scope
from repertory.notices import ALL_FILTERED_OUT
from repertory.search.answer import Answer, Hit
from repertory.search.engine import SearchEngine
from repertory.values import Values
from repertory_query.api.requests import parameters_of
from repertory_query.backend.answering import AnsweredSearches
from repertory_query.backend.caller_view import for_caller, text_for, with_path_for
from repertory_query.backend.service import Service
from repertory_query.pages.catalogue import Listing, listing, ordered
from repertory_query.pages.facets import Facet, catalogue_facets, result_facets
from repertory_query.pages.highlighting import Highlighter
from repertory_query.pages.item import home_of, states_of
from repertory_query.pages.page import PageRoute, page
from repertory_query.pages.search_form import LIMIT, Form
from repertory_query.records.actions import Action

CATALOGUE = "/catalogue"

T = TypeVar("T")


class Card(msgspec.Struct, frozen=True):
    """A hit with its matched words highlighted.

    Attributes:
        name: Its name.
        description: Its description.
        excerpt: A passage of the matched section, if any.
    """

    hit: Hit
    name: Markup
    description: Markup
    excerpt: Markup


class PageContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the page, apart from the answer.

    Attributes:
        facets: The filters with their counts.
        cards: The hits of the answer.
        listed: A page of the catalogue, if shown.
        states: The review states of items, by id.
        notices: Notices about the sources, if there is no answer with notices.
        is_filtered_out: Whether no item of the catalogue passes the filters of the answer.
    """

    facets: Sequence[Facet]
    cards: Sequence[Card] = ()
    listed: Listing | None = None
    states: dict[str, str] = {}
    notices: Sequence[str] = ()
    is_filtered_out: bool = False


def routes(
    service: Service, searches: AnsweredSearches, defaults: Callable[[], Values]
) -> list[BaseRoute]:
    """The routes; see ``pages.routes``."""
    pool = searches.pool
    all_facets = _per_engine(catalogue_facets)
    catalogue = _per_engine(lambda engine: ordered(engine.keywords.all()))

    async def shown(request: Request, base: str) -> Response:
        """The page: results, a page of the catalogue, or the start page."""
        form = parameters_of(request, Form, is_form=True)
        caller = request.state.caller
        values = defaults()
        visible = for_caller(caller, service)
        engine = service.engine if visible is service else await pool.run(lambda: visible.engine)
        answer = None
        if form.q.strip():
            answer = (await searches.answer(form.query(values), caller)).answer

        def found() -> PageContent:
            facets = all_facets(engine)
            if answer:
                counted = result_facets(facets, engine, form.query(values), answer)
                states = states_of(service, answer.hits)
                return PageContent(
                    facets=counted,
                    cards=_cards(engine, answer),
                    states=states,
                    is_filtered_out=ALL_FILTERED_OUT in answer.notices,
                )
            notices = [text_for(caller, one) for one in engine.notices]
            if not form.where and base == "/":
                return PageContent(facets=facets, notices=notices)
            items = ordered(visible.entries(form.where)) if form.where else catalogue(engine)
            listed = listing(items, form.page, partial(with_path_for, caller))
            states = states_of(service, listed.entries)
            return PageContent(facets=facets, listed=listed, states=states, notices=notices)

        return page(
            request,
            "part.html" if form.part else "search.html",
            form=form,
            usual=Form(limit=LIMIT, threshold=values.threshold, alpha=values.alpha),
            answer=answer,
            shown=await pool.run(found),
            base=base,
            total=len(engine.keywords),
            home=home_of(service),
        )

    async def search(request: Request) -> Response:
        """Search; without a query, show the filtered catalogue, or the start page."""
        return await shown(request, "/")

    async def browse(request: Request) -> Response:
        """Show the catalogue."""
        return await shown(request, CATALOGUE)

    return [
        PageRoute(
            "GET",
            "/",
            search,
            action=Action("search", has_text=True, needs="q"),
            scope=Scope.READ,
        ),
        PageRoute("GET", CATALOGUE, browse, action=Action("list"), scope=Scope.READ),
    ]


def _cards(engine: SearchEngine, answer: Answer) -> list[Card]:
    """The hits, with excerpts of the matched sections if the items can be read."""
    items = engine.available_items([hit.id for hit in answer.hits if hit.matched_in])
    cards = []
    for hit in answer.hits:
        highlighter, item = Highlighter(hit.evidence.terms), items.get(hit.id)
        cards.append(
            Card(
                hit,
                highlighter.marked(hit.name or hit.id),
                highlighter.marked(hit.description),
                highlighter.excerpt(item.body, hit.matched_in) if item else Markup(),
            )
        )
    return cards


def _per_engine(function: Callable[[SearchEngine], T]) -> Callable[[SearchEngine], T]:
    """A function of an engine, with its value cached for as long as the engine is used."""
    known: WeakKeyDictionary[SearchEngine, T] = WeakKeyDictionary()

    @wraps(function)
    def remembering(engine: SearchEngine) -> T:
        if engine not in known:
            known[engine] = function(engine)
        return known[engine]

    return remembering
