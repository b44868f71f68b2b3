"""``repertory api``."""

from pathlib import Path

from repertory.settings import load
from repertory_admin.app import app, command
from repertory_admin.long_running import begin_service
from repertory_admin.options import RANKING, SERVING, STORE, TEAM, Flags


@command(
    app,
    "api",
    settings=(*STORE, "device", "mcp_timeout", *RANKING, *SERVING, *TEAM),
    examples=("repertory api", "repertory api --host 0.0.0.0 --requests-per-minute 600"),
)
def api(flags: Flags) -> None:
    """Answer a team's searches over HTTP.

    Run as many as the searches need, behind a load balancer; see `repertory watch`.
    """
    settings = load(flags, Path.cwd())
    begin_service()
    from repertory_query.run import run  # noqa: PLC0415 - slow to import, and optional

    run(settings)
