"""The page of one item: its fields, how to use it, and its text."""

import os
from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from repertory.backend import Backend
from repertory.catalogue.item import Item, Kind
from repertory.errors import UnknownItemError
from repertory.index.keywords.document import Entry
from repertory.keys import Scope
from repertory.local.backend import read_or_none
from repertory.notices import about_text
from repertory.search.answer import Hit
from repertory.search.lookup import close_to
from repertory_query.access.callers import Access, Caller
from repertory_query.backend.caller_view import for_caller, visible_to
from repertory_query.backend.service import Service
from repertory_query.pages import connecting, rendering
from repertory_query.pages.argument_form import fields
from repertory_query.pages.page import page
from repertory_query.pages.schema import rows


class ItemPage:
    """Shows items to callers.

    Args:
        service: The running server.
        access: Access control, which knows whether requests need a key.
    """

    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self._access = access

    def show(self, request: Request, item_id: str) -> Response:
        """The page of an item, at the section that matched, or the page for an unknown item."""
        backend = visible_to(request.state.caller, self._service)
        try:
            item = backend.item(item_id)
        except UnknownItemError:
            close = close_to(
                for_caller(request.state.caller, self._service).engine.keywords, item_id
            )
            return page(request, "unknown.html", 404, item_id=item_id, close=close)
        return self.page(request, backend, item)

    def page(
        self,
        request: Request,
        backend: Backend,
        item: Item,
        status: int = 200,
        *,
        sent: Mapping[str, str] | None = None,
        tried: object = None,
    ) -> Response:
        """The page of an item.

        Args:
            request: The request.
            backend: The backend as the caller sees it.
            item: The item.
            status: The status of the response.
            sent: The posted form with arguments, if any.
            tried: The outcome of the call, if any.
        """
        caller: Caller = request.state.caller
        calls_allowed = self._service.calls_allowed
        may_call = calls_allowed and Scope.CALL in caller.scopes and item.kind is Kind.TOOL
        matched = request.query_params.get("section", "")
        is_long = len(item.body) > rendering.MAX_LENGTH
        is_raw = is_long or "raw" in request.query_params
        schemas = {"Parameters": item.input_schema, "Result": item.output_schema}
        url = self._access.url(request)
        return page(
            request,
            "item.html",
            status,
            item=item,
            links=backend.links(item.id),
            notice=about_text(item, backend.stats().problems),
            state=states_of(self._service, [item]).get(item.id, ""),
            schemas=[(title, one, rows(one)) for title, one in schemas.items() if one],
            parts=[] if is_raw else rendering.rendered(item.body, matched),
            is_raw=is_raw,
            is_long=is_long,
            home=home_of(self._service),
            origin=origin_of(self._service, item.source),
            calls_allowed=calls_allowed,
            may_call=may_call,
            fields=fields(item) if may_call else [],
            sent=sent or {},
            tried=tried,
            requests=connecting.curl_commands(
                item,
                url,
                connecting.key_in_shell(request, self._access),
                may_call=may_call,
            ),
        )


def states_of(service: Service, shown: Sequence[Item | Entry | Hit]) -> dict[str, str]:
    """The review states of some items that need one: ``new``, ``changed`` or ``quarantined``."""
    found = read_or_none(lambda: service.parts.reviews.states([one.id for one in shown]))
    sources = {one.id: one.source for one in shown}
    return {
        item_id: state.value
        for (source, item_id), state in (found or {}).items()
        if sources[item_id] == source
    }


def home_of(service: Service) -> str:
    """The prefix of paths that is hidden: the folder in which the server runs."""
    return f"{service.workspace.directory}{os.sep}"


def origin_of(service: Service, source: str) -> str:
    """The https URL from which a source was fetched; empty for all other sources."""
    for one in service.source_states():
        if one.name == source and one.type != "mcp":
            address = one.location.partition(" ")[0]  # without the ref of a repository
            return address if address.startswith("https://") else ""
    return ""
