"""``repertory api``."""

from pathlib import Path

from repertory.settings import load
from repertory_admin.app import app, command
from repertory_admin.options import RANKING, SERVING, STORE, TEAM, Flags


@command(
    app,
    "api",
    settings=(*STORE, "device", "mcp_timeout", *RANKING, *SERVING, *TEAM),
    examples=("repertory api", "repertory api --host 0.0.0.0 --requests-per-minute 600"),
)
def api(flags: Flags) -> None:
    """Answer a team's searches over HTTP.

    Run as many as there are searches for, behind a load balancer; see `repertory watch`.
    """
    from repertory_admin.long_running import service  # noqa: PLC0415 - --help must be instant

    settings = load(flags, Path.cwd())
    with service():
        from repertory_query.run import run  # noqa: PLC0415 - it may not be installed

        run(settings)
