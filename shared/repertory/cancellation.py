"""Calls that their callers do not wait for any more: they are cancelled, wherever they are."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from typing_extensions import override

if TYPE_CHECKING:
    from anyio import CancelScope

P = ParamSpec("P")
T = TypeVar("T")

_END: ContextVar[Future[None] | None] = ContextVar("end_of_waiting", default=None)
_IS_OVER: ContextVar[Callable[[], bool]] = ContextVar("is_over", default=lambda: False)


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


@contextmanager
def until(is_over: Callable[[], bool]) -> Iterator[None]:
    """Let work that takes long end soon, with ``CancelledError``, once this is true."""
    token = _IS_OVER.set(is_over)
    try:
        yield
    finally:
        _IS_OVER.reset(token)


def checkpoint() -> Callable[[], None]:
    """What such work calls, on any thread: it raises ``CancelledError`` if it is to end."""
    is_over = _IS_OVER.get()

    def check() -> None:
        if is_over():
            raise CancelledError

    return check


def cancelling(scope: "CancelScope") -> Callable[[], None]:
    """What cancels a scope of the event loop that runs here, from any thread."""
    import asyncio  # noqa: PLC0415 - not for those who ask a server

    loop = asyncio.get_running_loop()

    def cancel() -> None:
        with suppress(RuntimeError):  # it has ended
            loop.call_soon_threadsafe(scope.cancel)

    return cancel


class _Lookups(ThreadPoolExecutor):
    """Looks up the addresses of hosts, which nothing can interrupt, and is never waited for."""

    @override
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        done.set_running_or_notify_cancel()

        def run() -> None:
            try:
                done.set_result(fn(*args, **kwargs))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=run, name="lookup", daemon=True).start()
        return done

    @override
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End without waiting for calls that still run."""


def leave_lookups() -> None:
    """Have the event loop that runs here not wait at its end for the lookup of an address.

    Otherwise a call would take as long as the lookup, whatever its timeout is.
    """
    import asyncio  # noqa: PLC0415 - as above

    asyncio.get_running_loop().set_default_executor(_Lookups())
