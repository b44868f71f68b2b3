"""Starts the embedded server of a directory, or joins the server of other directories.

This module imports little: a server listens before it imports the rest, and a process that joins
another one never imports it.
"""

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from repertory.errors import StoreError, UsageError
from repertory.remote.running import announce, the_only_server
from repertory.settings import Settings
from repertory.system.addresses import url_of
from repertory.system.files import is_gone, make_directory
from repertory_embedded import joining
from repertory_query.server.listening import listening

if TYPE_CHECKING:
    from repertory_query.backend.service import Service

HOST_TIMEOUT_S = 15.0  # for a host that starts or ends
RETRY_INTERVAL_S = 0.1


class Callbacks(Protocol):
    """The functions that ``run`` calls when it knows which server serves the directory."""

    def ready(self, url: str, token: str, service: "Service") -> None:
        """Called when this process answers requests, at this URL and with this token."""
        ...

    def joined(self, joined: joining.Joined) -> None:
        """Called when the host serves the directory. The host is left when this returns."""
        ...

    def could_not_join(self, reason: str) -> None:
        """Called when the host cannot be joined, so that this process serves the directory."""
        ...


def run(
    settings: Settings,
    directory: Path,
    stopping: Sequence[int],
    callbacks: Callbacks,
) -> None:
    """Serve a directory until the process is asked to end, or until the host that serves it ends.

    Connections are accepted at once, and answered when everything is imported.

    The first server of a data directory is its host. Later ones ask the host to serve their
    directory, or are servers of their own if their settings do not allow that.

    Args:
        settings: The active settings.
        directory: The directory whose catalogue is served.
        stopping: Ends the server once it is not empty; see ``termination_signals``.
        callbacks: Called once it is known which server serves the directory.

    Raises:
        UsageError: The settings do not allow this, or the address is unavailable.
        DeviceUnavailableError: A GPU is requested but missing.
        StoreError: The directory has another server, or the data directory is not writable or was
            removed.
    """
    _check(settings)
    make_directory(settings.data_dir)
    deadline = time.monotonic() + HOST_TIMEOUT_S
    reason = ""
    while not stopping:
        with joining.hosting(settings) as is_host:
            if is_host:
                _serve(settings, directory, stopping, callbacks.ready, is_host=True)
                return
        try:
            joined = _join(settings, directory, stopping)
        except UsageError as error:
            reason = str(error)
            break
        except StoreError as error:  # the host is starting or ending
            reason = str(error)
            if time.monotonic() > deadline:
                break
            time.sleep(RETRY_INTERVAL_S)
        else:
            if joined is not None:
                with joined:
                    callbacks.joined(joined)
            return

    def ready(url: str, token: str, service: "Service") -> None:
        callbacks.could_not_join(f"{reason} This directory has a server of its own.")
        callbacks.ready(url, token, service)

    if not stopping:
        _serve(settings, directory, stopping, ready, is_host=False)


def _join(settings: Settings, directory: Path, stopping: Sequence[int]) -> joining.Joined | None:
    """Ask the host to serve the directory; None if this process is asked to end meanwhile.

    This waits on another thread, because the host may hang and the wait cannot be interrupted.

    Raises:
        UsageError, StoreError: As for ``joining.join``.
    """
    done: Future[joining.Joined] = Future()

    def join() -> None:
        try:
            done.set_result(joining.join(settings, directory))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=join, name="join", daemon=True).start()
    while not stopping:
        if wait([done], RETRY_INTERVAL_S).done:
            return done.result()
    return None


def _serve(
    settings: Settings,
    directory: Path,
    stopping: Sequence[int],
    ready: Callable[[str, str, "Service"], None],
    *,
    is_host: bool,
) -> None:
    """Serve the directory from this process; the host also serves those of other processes."""
    with the_only_server(settings, directory) as claim, listening(settings) as listener:
        # From now on, other commands wait for this server instead of indexing beside it, and other
        # servers wait for it to open their directories.
        url = url_of(*listener.getsockname()[:2])
        token = secrets.token_urlsafe(32)
        announce(settings, directory, url, token)
        if is_host:
            joining.invite(settings, url, token)
        from repertory_embedded.host import Host  # noqa: PLC0415 - slow to import

        Host(settings, url, token).run(
            directory, claim, listener, stopping, lambda service: ready(url, token, service)
        )
        if is_gone(claim):
            raise StoreError(
                f"{settings.data_dir} was removed while its server ran; start the server again."
            )


def _check(settings: Settings) -> None:
    """Check that a directory can be served with these settings.

    Raises:
        UsageError: The settings do not allow this.
        DeviceUnavailableError: A GPU is requested but missing.
    """
    values = settings.values
    if values.redis_url:
        raise UsageError(
            "`repertory serve` runs in one process, without a Redis; unset REPERTORY_REDIS_URL, or "
            "run `repertory watch`, `repertory worker` and `repertory api`."
        )
    if values.no_cache:
        raise UsageError(
            "`repertory serve` keeps what it indexes; unset REPERTORY_SEARCH_NO_CACHE."
        )
    if values.device == "gpu":
        from repertory.embedding.load import check_device  # noqa: PLC0415 - slow to import

        check_device(values.device)
