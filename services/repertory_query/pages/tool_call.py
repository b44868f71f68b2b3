"""The form to try a tool. Its calls are checked and recorded like any other."""

import time
from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from repertory.backend import Backend
from repertory.calling.result import CallResult
from repertory.catalogue.item import Item
from repertory.catalogue.safety import DESTRUCTIVE
from repertory.errors import RepertoryError, UsageError
from repertory.keys import Scope
from repertory.text import cut
from repertory_query.access.origins import check_origin
from repertory_query.backend.caller_view import visible_to
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.pages.argument_form import arguments_of
from repertory_query.pages.item import ItemPage
from repertory_query.pages.page import PageRoute, page, posted_fields
from repertory_query.problems import status_of
from repertory_query.records.actions import Action

PATH = "/try/{item_id:path}"
CONFIRMED = "confirmed"  # the field that allows a destructive call
MAX_SHOWN = 50_000  # characters of a result

_UNCONFIRMED = (
    "This tool may delete or overwrite something. Tick the box to confirm that you want to call "
    "it; nothing was sent."
)


class CallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a call.

    Attributes:
        texts: The tool's answer, one text for each block.
        data: Its structured result as JSON, if any.
        ms: The duration of the call in milliseconds.
        failure: Why the call failed; empty if it has a result.
        is_error: Whether the tool itself reports a failure; ``texts`` has its message.
    """

    texts: tuple[str, ...] = ()
    data: str = ""
    ms: float = 0.0
    failure: str = ""
    is_error: bool = False


def routes(service: Service, items: ItemPage, calls: Pool) -> list[BaseRoute]:
    """The route of the form; ``calls`` are the threads for calls of tools."""

    async def call(request: Request) -> Response:
        """Call the tool, and show its answer."""
        # Only our own page may call this, and browsers send its origin. Programs use the API.
        check_origin(request, needed=True)
        sent = await posted_fields(request)
        return await calls.run(lambda: _called(request, service, items, sent))

    return [
        PageRoute(
            "POST",
            PATH,
            call,
            action=Action("call", "item_id", has_text=True),
            scope=Scope.CALL,
        ),
    ]


def _called(
    request: Request, service: Service, items: ItemPage, sent: Mapping[str, str]
) -> Response:
    backend = visible_to(request.state.caller, service)
    item = backend.item(request.path_params["item_id"])
    status, tried = _outcome(backend, item, sent)
    if "part" in request.query_params:
        return page(request, "tried.html", status, tried=tried)
    return items.page(request, backend, item, status, sent=sent, tried=tried)


def _outcome(backend: Backend, item: Item, sent: Mapping[str, str]) -> tuple[int, CallOutcome]:
    """The status and the outcome of a call with the arguments of a form."""
    began = time.perf_counter()
    try:
        if DESTRUCTIVE in item.tags and not sent.get(CONFIRMED):
            raise UsageError(_UNCONFIRMED)
        result = backend.call(item.id, arguments_of(item, sent))
    except RepertoryError as error:
        if not (status := status_of(error)):
            raise
        return status, CallOutcome(failure=str(error))
    ms = 1_000 * (time.perf_counter() - began)
    return (502 if result.is_error else 200), _tried(result, ms)


def _tried(result: CallResult, ms: float) -> CallOutcome:
    data = result.structured_content
    shown = "" if data is None else msgspec.json.format(msgspec.json.encode(data)).decode()
    return CallOutcome(
        texts=tuple(cut(_text(block), MAX_SHOWN) for block in result.content),
        data=cut(shown, MAX_SHOWN),
        ms=ms,
        is_error=result.is_error,
    )


def _text(block: Mapping[str, object]) -> str:
    """A block of a result as text; other content is described by its type and size."""
    if isinstance(text := block.get("text"), str):
        return text
    resource = block.get("resource")
    inner = resource if isinstance(resource, dict) else block
    if isinstance(text := inner.get("text"), str):
        return text
    data = inner.get("data", inner.get("blob", ""))
    size = f", {len(data) * 3 // 4:,} bytes" if isinstance(data, str) and data else ""
    what = inner.get("mimeType") or block.get("type") or "unknown"
    return f"[{what}{size}] {inner.get('uri', '')}".strip()
