"""MCP over the standard streams of this process, which belong to it from then on."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, create_task_group, to_thread
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server

from repertory.audit import Audit
from repertory.backend import Backend
from repertory.usage.recorder import UsageRecorder
from repertory_query.mcp.server import McpServer
from repertory_query.mcp.tool import Tool
from repertory_query.mcp.work import Work

THREADS = {Work.SEARCH: 8, Work.READ: 8, Work.CALL: 32}

T = TypeVar("T")


def run(
    backend: Backend,
    tools: Sequence[Tool],
    audit: Audit | None = None,
    usage: UsageRecorder | None = None,
) -> None:
    """Answer until the standard input ends.

    Args:
        backend: The backend.
        tools: The tools.
        audit: Records what is done; None if a team's server does.
        usage: Records what is searched for and used, where this process is the server.
    """
    anyio.run(_serve, backend, tools, audit, usage)


async def _serve(
    backend: Backend, tools: Sequence[Tool], audit: Audit | None, usage: UsageRecorder | None
) -> None:
    limiters = {work: CapacityLimiter(threads) for work, threads in THREADS.items()}

    async def threads(work: Work, call: Callable[[], T]) -> T:
        # A cancelled request is not waited for; its work ends by itself.
        return await to_thread.run_sync(call, limiter=limiters[work], abandon_on_cancel=True)

    ours = McpServer(backend, tools, threads, announcing=True, audit=audit, usage=usage)
    changes = NotificationOptions(tools_changed=True, resources_changed=True)
    options = ours.server.create_initialization_options(changes)
    async with stdio_server() as (received, sent), create_task_group() as tasks:
        tasks.start_soon(ours.announce)
        await ours.server.run(received, sent, options)
        tasks.cancel_scope.cancel()
