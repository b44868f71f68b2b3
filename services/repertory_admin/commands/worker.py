"""``repertory worker``."""

from pathlib import Path
from typing import Annotated

import typer

from repertory.settings import load
from repertory_admin.app import app, command
from repertory_admin.long_running import begin_service
from repertory_admin.options import STORE, TEAM, Flags


@command(
    app,
    "worker",
    settings=(*STORE, "device", *TEAM),
    examples=(
        "repertory worker",
        "repertory worker --concurrency 2 --queue saves --queue upkeep",
    ),
)
def worker(
    flags: Flags,
    concurrency: Annotated[
        int, typer.Option(min=1, help="The number of processes, each with its own model.")
    ] = 1,
    queue: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only take from saves, upkeep or builds; repeatable."),
    ] = None,
) -> None:
    """Embed and store the items that a team's watch service sends.

    Run as many as the work needs, on any number of machines. Saved files go before rebuilds. A
    worker needs no access to the files.
    """
    settings = load(flags, Path.cwd())
    begin_service()
    from repertory.indexing.celery_queue import QUEUES  # noqa: PLC0415 - slow to import, and optional
    from repertory_worker.app import run  # noqa: PLC0415 - slow to import

    run(settings, concurrency=concurrency, only=queue or QUEUES)
