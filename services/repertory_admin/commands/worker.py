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
        int, typer.Option(min=1, help="How many processes work, each with a model of its own.")
    ] = 1,
    queue: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only take from saves, upkeep or builds; repeatable."),
    ] = None,
) -> None:
    """Embed and store what a team's watch service hands over.

    Run as many as there is work for, on as many machines; what was just saved goes before what is
    rebuilt. No access to the files is needed.
    """
    settings = load(flags, Path.cwd())
    begin_service()
    from repertory.indexing.celery_queue import QUEUES  # noqa: PLC0415 - slow to import, and optional
    from repertory_worker.app import run  # noqa: PLC0415 - slow to import

    run(settings, concurrency=concurrency, only=queue or QUEUES)
