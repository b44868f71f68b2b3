"""The application: routes, what every request passes before them, and its description."""

from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from repertory.embedding.device import cores
from repertory.keys import keys_of
from repertory.settings import Settings
from repertory_query import (
    calling,
    explaining,
    functions,
    items,
    jobs,
    problems,
    runtime,
    searching,
    state,
)
from repertory_query.access import OPEN, Access
from repertory_query.guard import Guard, Record
from repertory_query.limits import Rates
from repertory_query.mcp.http import Mcp
from repertory_query.mcp.tool import Work
from repertory_query.metrics import Metrics
from repertory_query.pages import routes
from repertory_query.pool import Pool
from repertory_query.schemas import Refusal
from repertory_query.searching import Searches
from repertory_query.service import Service

# Most threads of searches wait to be embedded, so there are some more than cores.
THREADS_PER_CORE = 4
MOST_SEARCHES_WAITING = 128
MOST_OTHERS_WAITING = 32
MOST_CALLS = 32  # of tools at the same time


def create_app(service: Service, settings: Settings) -> FastAPI:
    """The query service's application.

    Args:
        service: The running server.
        settings: What is in force: keys, limits, and the defaults of a search.
    """
    values = settings.values
    metrics = Metrics(service.stats, lambda: service.call_outcomes)
    searches = Pool("search", THREADS_PER_CORE * cores(), MOST_SEARCHES_WAITING)
    others = Pool("other", 4, MOST_OTHERS_WAITING)  # what waits for a store holds up no search
    calls = Pool("calls", MOST_CALLS, MOST_OTHERS_WAITING)
    mcp = Mcp(service, values, {Work.SEARCH: searches, Work.READ: others, Work.CALL: calls})
    app = FastAPI(
        title="Repertory",
        summary="A team's searchable repertory of everything its AI agents can use.",
        version=version("repertory"),
        redirect_slashes=False,
        docs_url=None,  # its scripts come from elsewhere, and would run where all is allowed
        redoc_url=None,
        lifespan=mcp.lifespan,
    )
    answers = Searches(service, searches, metrics)
    access = Access(keys_of(settings), values.host)
    app.include_router(searching.router(answers, values))
    app.include_router(explaining.router(service, searches, values))
    app.include_router(functions.router(service, searches))
    app.include_router(runtime.router(service, others))
    app.include_router(calling.router(service, calls))
    app.include_router(routes.router(service, answers, others, access, values))
    app.include_router(items.router(service, others))
    app.include_router(state.router(service, others, metrics))
    app.include_router(jobs.router(service, others))
    app.routes.extend(mcp.routes)
    problems.install(app)
    app.add_middleware(Guard, access, Rates(values.requests_per_minute))
    app.add_middleware(Record, metrics)  # the outermost: what was added last
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]  # FastAPI's own way
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with what holds for all routes: keys, and how problems are told."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        components = document["components"]
        components["schemas"]["Refusal"] = Refusal.model_json_schema()
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        told = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Refusal"}}}
        for path, operations in document["paths"].items():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                operation["responses"]["default"] = {"description": "A problem.", "content": told}
                if path not in OPEN:
                    operation["security"] = [{}, {"key": []}]  # none where there are no keys
        for unused in ("HTTPValidationError", "ValidationError"):
            components["schemas"].pop(unused, None)
        app.openapi_schema = document
    return app.openapi_schema
