"""The application: its routes, and the middleware for every request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette

from repertory.audit import Audit
from repertory.embedding.device import cores
from repertory.keys import keys_of
from repertory.project.defaults import Defaults
from repertory.settings import Settings
from repertory.usage.digest import check_webhook
from repertory_query import problems
from repertory_query.access.callers import Access, Owner
from repertory_query.access.rates import Rates
from repertory_query.api import exporting, openapi_document
from repertory_query.api import routes as api
from repertory_query.api.operations import versioned
from repertory_query.backend.answering import AnsweredSearches
from repertory_query.backend.pool import Pool, Work
from repertory_query.backend.service import Service
from repertory_query.background import sampling, sending_digests, sending_metrics
from repertory_query.guard import Guard, RequestRecorder
from repertory_query.mcp.http import McpEndpoints
from repertory_query.pages import routes as pages
from repertory_query.records.auditing import AuditTrail
from repertory_query.records.metrics import Metrics
from repertory_query.records.query_process import QueryProcess
from repertory_query.sign_in import metadata
from repertory_query.sign_in.people import people_of

# Most searches wait for their embedding, so there are more threads than cores.
THREADS_PER_CORE = 4
MAX_WAITING_SEARCHES = 128
MAX_WAITING_OTHERS = 32
MAX_CALLS = 32  # concurrent calls of tools


def create_app(
    service: Service,
    settings: Settings,
    rates: Rates | None = None,
    owner: Owner | None = None,
    member: QueryProcess | None = None,
) -> Starlette:
    """The query service's application.

    Args:
        service: The running server.
        settings: The active settings: keys, limits, and the defaults of a search.
        rates: Counts the requests of each caller; shared by all projects of one server.
        owner: The user who started the server; None for a team's server.
        member: Which of several processes this is; None if it is the only one.

    Raises:
        ConfigurationError: A setting of the webhook or of sign-in is invalid.
    """
    values = settings.values
    if values.insights_webhook:
        check_webhook(values.insights_webhook)
    rates = rates or Rates(values.requests_per_minute)
    metrics = Metrics(member, is_team=service.parts.is_team)
    searches = Pool("search", THREADS_PER_CORE * cores(), MAX_WAITING_SEARCHES)
    batches = Pool("batch", THREADS_PER_CORE * cores() // 2, MAX_WAITING_SEARCHES)
    others = Pool("other", 4, MAX_WAITING_OTHERS)  # so that a slow store blocks no search
    calls = Pool("calls", MAX_CALLS, MAX_WAITING_OTHERS)
    audit = Audit(settings, service.workspace.directory)
    usage = service.parts.usage_recorder()
    pools = {Work.SEARCH: searches, Work.READ: others, Work.CALL: calls}
    defaults = Defaults(settings, service.workspace.directory)
    mcp = McpEndpoints(service, defaults, audit, usage, pools)
    answers = AnsweredSearches(service, searches, batches, metrics)
    keys = keys_of(settings, service.workspace.directory)
    access = Access(keys, values.host, owner, people_of(values), values.public_url)
    operations = api.routes(service, answers, others, calls, access, defaults, metrics)
    document = openapi_document.document(operations)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with (
            sending_metrics(metrics, service),
            mcp.lifespan(),
            sampling(service.sample),
            sending_digests(values.insights_webhook, service, others),
        ):
            yield

    app = Starlette(
        routes=[
            *versioned(operations),
            *operations,  # the same without the version, for contracts and older clients
            *pages.routes(service, answers, others, calls, access, defaults, document),
            *mcp.routes,
            *metadata.routes(access.openid),
            *exporting.routes(service, others),
            *openapi_document.routes(document),
        ],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    problems.install(app)
    app.add_middleware(Guard, access, rates)
    trail = AuditTrail(audit, usage, rates)
    app.add_middleware(RequestRecorder, metrics, trail)  # added last, so it is the outermost
    return app
