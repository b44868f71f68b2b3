"""``repertory watch``."""

from pathlib import Path

from repertory.settings import load
from repertory_admin.app import app, command
from repertory_admin.long_running import begin_service
from repertory_admin.options import STORE, TEAM, WATCHING, Flags


@command(
    app,
    "watch",
    settings=(*STORE, "mcp_timeout", *TEAM, *WATCHING),
    examples=("repertory watch --redis-url redis://localhost --qdrant-url http://localhost:6333",),
)
def watch(flags: Flags) -> None:
    """Watch this directory for a team's workers.

    A team runs one watch service, some `repertory worker` and some `repertory api`, a Redis and a
    Qdrant server. `repertory serve` is all of them in one process.
    """
    directory = Path.cwd()
    settings = load(flags, directory)
    begin_service()
    from repertory_watch.run import run  # noqa: PLC0415 - slow to import, and optional

    run(settings, directory)
