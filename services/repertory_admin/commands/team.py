"""``repertory watch``, ``repertory worker`` and ``repertory api``: the processes of a team."""

from pathlib import Path
from typing import Annotated

import typer

from repertory.settings import load
from repertory.system import logs
from repertory_admin.app import app, command
from repertory_admin.options import CLUSTER, RANKING, SERVING, STORE, TEAM, WATCHING, Flags


@command(
    app,
    "watch",
    settings=(*STORE, "mcp_timeout", *TEAM, *WATCHING),
    examples=("repertory watch --redis-url redis://localhost --qdrant-url http://localhost:6333",),
)
def watch(flags: Flags) -> None:
    """Watch this directory for a team's workers.

    A team runs one `repertory watch`, some `repertory worker` and `repertory api`, a Redis and a
    Qdrant server. `repertory serve` does all of it in one process.
    """
    directory = Path.cwd()
    settings = load(flags, directory)
    logs.begin()
    from repertory_watch.run import run  # noqa: PLC0415 - slow to import, and optional

    run(settings, directory)


@command(
    app,
    "worker",
    settings=(*STORE, *CLUSTER, "device", *TEAM),
    examples=(
        "repertory worker",
        "repertory worker --concurrency 2 --queue saves --queue maintenance",
    ),
)
def worker(
    flags: Flags,
    concurrency: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="The number of processes, each with its own model."),
    ] = 1,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Take jobs only from saves, maintenance, builds or snapshots; repeatable.",
        ),
    ] = None,
) -> None:
    """Embed and store the items that a team's watch service sends.

    Run as many as the work needs, on any number of machines. Saved files go before rebuilds. A
    worker needs no access to the files.
    """
    settings = load(flags, Path.cwd())
    logs.begin()
    from repertory.indexing.celery_queue import QUEUES  # noqa: PLC0415 - slow to import, and optional
    from repertory_worker.app import run  # noqa: PLC0415 - slow to import

    run(settings, concurrency=concurrency, only=queue or QUEUES)


@command(
    app,
    "api",
    settings=(*STORE, "device", "mcp_timeout", *RANKING, *SERVING, *TEAM),
    examples=("repertory api", "repertory api --host 0.0.0.0 --processes 4"),
)
def api(
    flags: Flags,
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            max=64,
            metavar="N",
            help="The number of processes behind the port, each with its own model and index.",
        ),
    ] = 1,
) -> None:
    """Answer a team's searches over HTTP.

    Each process uses one core. Run as many as the searches need, behind one port or behind a load
    balancer; see `repertory watch`.
    """
    settings = load(flags, Path.cwd())
    logs.begin()
    if processes == 1:
        from repertory_query.server.run import run  # noqa: PLC0415 - slow to import, and optional

        run(settings)
    else:
        from repertory_query.server.processes import run as run_all  # noqa: PLC0415 - as above

        run_all(settings, processes)
