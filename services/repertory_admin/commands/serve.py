"""``repertory serve``."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from repertory.errors import StoreBusyError
from repertory.remote.running import sign_in_url
from repertory.system import logs
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.options import RANKING, SERVING, STORE, WATCHING, Flags
from repertory_admin.target import here
from repertory_admin.text import short_path
from repertory_embedded import start
from repertory_embedded.joining import Joined
from repertory_query.server.signals import termination_signals

if TYPE_CHECKING:
    from repertory_query.backend.service import Service


INTERVAL_S = 0.25


@command(
    app,
    "serve",
    settings=(*STORE, "device", "mcp_timeout", *RANKING, *SERVING, *WATCHING),
    examples=(
        "repertory serve",
        "repertory serve --port 7701 --data-dir ~/.cache/repertory-two",
        'curl -H "Authorization: Bearer $(repertory keys token)" '
        '"http://127.0.0.1:7700/v1/search?q=read+a+file"',
    ),
)
def serve(flags: Flags) -> None:
    """Watch, index and answer over HTTP until you press Ctrl-C.

    Changes are indexed at once. Other commands in the same directory use the server. If a server of
    another directory runs already, it serves this one as well, until Ctrl-C; --port starts another
    server. It answers only you: a terminal shows the address that signs your browser in, and
    `repertory keys token` prints the token for programs. Others need a key; see `repertory keys`.
    """
    settings, directory = here(flags)
    logs.begin()
    with termination_signals() as stopping:
        callbacks = _Callbacks(directory, stopping)
        while not stopping:
            try:
                start.run(settings, directory, stopping, callbacks)
            except StoreBusyError:
                if not callbacks.has_joined:
                    raise
                time.sleep(INTERVAL_S)  # the last server here is still shutting down


class _Callbacks:
    """Tells the user where the directory is served."""

    def __init__(self, directory: Path, stopping: Sequence[int]) -> None:
        self.has_joined = False
        self._directory = directory
        self._stopping = stopping

    def ready(self, url: str, token: str, _: "Service") -> None:
        where = short_path(str(self._directory))
        _say(f"Serving {where} at {url}; {url}/openapi.json describes the API.")
        _invite(url, token)

    def joined(self, joined: Joined) -> None:
        self.has_joined = True
        _say(f"Joined the server at {joined.url} (process {joined.pid}).")
        if joined.ignored_settings:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in joined.ignored_settings)
            terminal.warn(
                f"It has other settings for this directory, so these have no effect: {names}. To "
                "use them, end the other process of this directory."
            )
        _invite(joined.url, joined.key)
        while not self._stopping and joined.lasts(INTERVAL_S):
            pass

    def could_not_join(self, reason: str) -> None:
        terminal.note(reason)


def _invite(url: str, token: str) -> None:
    """Show the address that signs a browser in, but only in a terminal: others may read a file."""
    if sys.stdout.isatty():
        _say(f"Open {sign_in_url(url, token)} in a browser.")
    else:
        _say("`repertory keys token` prints the token for programs and browsers.")


def _say(text: str) -> None:
    """Write a line at once, because a program may wait for it."""
    terminal.say(text)
    sys.stdout.flush()
