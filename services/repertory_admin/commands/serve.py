"""``repertory serve``."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from repertory_admin import embedded, terminal
from repertory_admin.app import app, command
from repertory_admin.backend import here
from repertory_admin.logs import begin_service
from repertory_admin.options import RANKING, SERVING, STORE, WATCHING, Flags
from repertory_query.signals import termination_signals

if TYPE_CHECKING:
    from repertory_query.service import Service


@command(
    app,
    "serve",
    settings=(*STORE, "device", "mcp_timeout", *RANKING, *SERVING, *WATCHING),
    examples=(
        "repertory serve",
        "repertory serve --port 7701 --data-dir ~/.cache/repertory-two",
        'curl "http://127.0.0.1:7700/search?q=read+a+file"',
    ),
)
def serve(flags: Flags) -> None:
    """Watch, index and answer over HTTP until you press Ctrl-C.

    Changes are indexed at once. Other commands in the same directory use the server. Ctrl-C ends
    it. Until a key exists, everyone who can reach it may read; see `repertory keys`.
    """
    settings, directory = here(flags)
    begin_service()
    with termination_signals() as stopping:
        embedded.run(settings, directory, stopping, partial(_ready, directory))


def _ready(directory: Path, url: str, _: "Service") -> None:
    where = terminal.short_path(str(directory))
    terminal.say(f"Serving {where} at {url}; {url}/openapi.json describes the API.")
