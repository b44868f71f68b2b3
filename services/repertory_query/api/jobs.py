"""``/rebuild`` and ``/queue``: pending, running and failed jobs."""

from starlette.requests import Request
from starlette.responses import Response

from repertory.keys import Scope
from repertory.stats import Jobs, Rebuild
from repertory.wire import RetriedJobs, RetryRequest
from repertory_query.api.operations import Nothing, Operations, answer
from repertory_query.backend.caller_view import jobs_for
from repertory_query.backend.pool import Pool
from repertory_query.backend.service import Service
from repertory_query.records.actions import Action, AuditedRoute


def routes(service: Service, pool: Pool) -> list[AuditedRoute]:
    """The routes."""
    operations = Operations("jobs")

    @operations.post(
        "/rebuild",
        Nothing,
        returns=Rebuild,
        status=202,
        scope=Scope.ADMIN,
        action=Action("rebuild"),
        summary="Rebuild",
    )
    async def rebuild(_: Request, __: Nothing) -> Response:
        """Start building a new index beside the active one; `/v1/stats` shows the progress."""
        return answer(await pool.run(service.rebuild), 202)

    @operations.get("/queue", Nothing, returns=Jobs, action=None, summary="Jobs")
    async def list_jobs(request: Request, _: Nothing) -> Response:
        """List the pending, the running and the failed jobs."""
        return answer(await pool.run(lambda: jobs_for(request.state.caller, service)))

    @operations.post(
        "/queue/retry",
        RetryRequest,
        returns=RetriedJobs,
        scope=Scope.ADMIN,
        action=Action("retry"),
        summary="Retry failed jobs",
    )
    async def retry_jobs(_: Request, given: RetryRequest) -> Response:
        """Try failed jobs again, with the items as they are now."""
        return answer(RetriedJobs(retried=await pool.run(lambda: service.retry(given.ids))))

    return operations.routes
