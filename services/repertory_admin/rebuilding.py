"""Waits for a server's rebuild, with a progress bar."""

import time

from repertory.client import Client
from repertory.errors import StoreError
from repertory.indexing.collections import configuration_of, generation_of
from repertory.server_state import Rebuild, Stats
from repertory_admin import terminal
from repertory_admin.progress import Bars

POLL_INTERVAL_S = 0.3
TIMEOUT_S = 60.0  # without an answer: the server may be restarting


def rebuilt(client: Client, begun: Rebuild) -> Stats:
    """Wait until the new generation, or a newer one, is active; return the server's state.

    Raises:
        StoreError: The server does not answer, or its configuration has changed.
    """
    answered_at = time.monotonic()
    shown: set[str] = set()
    with Bars() as bars:
        while True:
            stats = None
            try:
                stats = client.stats()
                answered_at = time.monotonic()
            except StoreError:
                if time.monotonic() - answered_at > TIMEOUT_S:
                    raise
            if stats is not None:
                if _is_there(stats, begun):
                    return stats
                for trouble in stats.troubles:
                    if trouble not in shown:
                        shown.add(trouble)
                        terminal.warn(f"waiting: {trouble}")
                if building := stats.building:
                    bars.step("Building", building.done, building.total)
            time.sleep(POLL_INTERVAL_S)


def _is_there(stats: Stats, begun: Rebuild) -> bool:
    """Whether the new generation is active."""
    if stats.configuration != begun.configuration:
        raise StoreError(
            "The configuration has changed meanwhile, so another index is being built; "
            "`repertory stats` shows it."
        )
    found = stats.collection
    return (
        configuration_of(found) == begun.configuration and generation_of(found) >= begun.generation
    )
