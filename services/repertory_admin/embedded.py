"""Starts the embedded server. It imports little: it listens before it imports the rest."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from repertory.errors import UsageError
from repertory.files import make_directory
from repertory.running import announce, the_only_server
from repertory.settings import Settings
from repertory_query.listening import listening

if TYPE_CHECKING:
    from repertory_query.service import Service


def run(
    settings: Settings,
    directory: Path,
    stopping: Sequence[int],
    ready: Callable[[str, "Service"], None],
) -> None:
    """Watch, index and answer until the process is asked to end.

    Connections are accepted at once, and answered when everything is imported.

    Args:
        settings: The active settings.
        directory: The directory whose catalogue is served.
        stopping: Ends it as soon as it is not empty; see ``termination_signals``.
        ready: Called with the URL and the service once requests are answered.

    Raises:
        UsageError: The settings contradict this, or the address is unavailable.
        StoreError: The directory has another server, or the data directory is not writable.
    """
    values = settings.values
    if values.redis_url:
        raise UsageError(
            "`repertory serve` is all in one process, without a Redis; unset REPERTORY_REDIS_URL, "
            "or run `repertory watch`, `repertory worker` and `repertory api`."
        )
    if values.no_cache:
        raise UsageError(
            "`repertory serve` keeps what it indexes; unset REPERTORY_SEARCH_NO_CACHE."
        )
    make_directory(settings.data_dir)
    with the_only_server(settings, directory), listening(settings) as listener:
        # From now on, other commands wait for this server instead of indexing beside it.
        url = announce(settings, directory, *listener.getsockname()[:2])
        from repertory_admin import server  # noqa: PLC0415 - slow to import

        server.run(settings, directory, listener, stopping, lambda service: ready(url, service))
