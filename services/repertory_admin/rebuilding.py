"""Waiting for a server's rebuild, with a bar."""

import time

from repertory.client import Client
from repertory.errors import StoreError
from repertory.indexing.collections import configuration_of, generation_of
from repertory.server_state import Rebuild, Stats
from repertory_admin import terminal
from repertory_admin.progress import Bars

LOOK = 0.3  # seconds between two looks
PATIENCE = 60.0  # seconds that a server may be silent: it may be starting again


def rebuilt(client: Client, begun: Rebuild) -> Stats:
    """The server's state once the new generation, or a newer one, is searched.

    Raises:
        StoreError: The server stays away, or another configuration has been taken meanwhile.
    """
    heard = time.monotonic()
    told: set[str] = set()
    with Bars() as bars:
        while True:
            stats = None
            try:
                stats = client.stats()
                heard = time.monotonic()
            except StoreError:
                if time.monotonic() - heard > PATIENCE:
                    raise
            if stats is not None:
                if _is_there(stats, begun):
                    return stats
                for trouble in stats.troubles:
                    if trouble not in told:
                        told.add(trouble)
                        terminal.warn(f"waiting: {trouble}")
                if building := stats.building:
                    bars.step("Building", building.done, building.total)
            time.sleep(LOOK)


def _is_there(stats: Stats, begun: Rebuild) -> bool:
    """Whether the new generation is searched."""
    if stats.configuration != begun.configuration:
        raise StoreError(
            "The configuration has changed meanwhile, so another index is being built; "
            "`repertory stats` shows it."
        )
    found = stats.collection
    return (
        configuration_of(found) == begun.configuration and generation_of(found) >= begun.generation
    )
