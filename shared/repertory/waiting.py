"""Calls that their callers do not wait for any more: they are cancelled, wherever they are."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyio import CancelScope

_END: ContextVar[Future[None] | None] = ContextVar("end_of_waiting", default=None)


@contextmanager
def waiting() -> Iterator[None]:
    """Wait for calls, also on other threads; those that still run at its end are cancelled."""
    end: Future[None] = Future()
    token = _END.set(end)
    try:
        yield
    finally:
        _END.reset(token)
        end.cancel()


def when_given_up(cancel: Callable[[], object]) -> None:
    """Have a call cancelled once its caller does not wait any more; at once if that is so already.

    Outside of ``waiting`` the caller itself waits, so nothing is to be done.
    """
    if end := _END.get():
        end.add_done_callback(lambda _: cancel())


def cancelling(scope: "CancelScope") -> Callable[[], None]:
    """What cancels a scope of the event loop that runs here, from any thread."""
    import asyncio  # noqa: PLC0415 - not for those who ask a server

    loop = asyncio.get_running_loop()

    def cancel() -> None:
        with suppress(RuntimeError):  # it has ended
            loop.call_soon_threadsafe(scope.cancel)

    return cancel
