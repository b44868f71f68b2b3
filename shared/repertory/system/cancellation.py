"""Cancel calls, on any thread, whose callers no longer wait for them."""

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
    """Cancel the calls that still run at the end of the block, also on other threads."""
    end: Future[None] = Future()
    token = _END.set(end)
    try:
        yield
    finally:
        _END.reset(token)
        end.cancel()


def when_given_up(cancel: Callable[[], object]) -> None:
    """Run ``cancel`` when the caller stops waiting, or at once if it already has.

    Outside ``waiting`` the caller always waits, so this does nothing.
    """
    if end := _END.get():
        end.add_done_callback(lambda _: cancel())


@contextmanager
def until(is_over: Callable[[], bool]) -> Iterator[None]:
    """Make long work in this block end with ``CancelledError`` once ``is_over`` is true."""
    token = _IS_OVER.set(is_over)
    try:
        yield
    finally:
        _IS_OVER.reset(token)


def checkpoint() -> Callable[[], None]:
    """A function that long work calls on any thread; raises ``CancelledError`` to end it."""
    is_over = _IS_OVER.get()

    def check() -> None:
        if is_over():
            raise CancelledError

    return check


def cancelling(scope: "CancelScope") -> Callable[[], None]:
    """A function that cancels a scope of the running event loop from any thread."""
    import asyncio  # noqa: PLC0415 - not needed to ask a server

    loop = asyncio.get_running_loop()

    def cancel() -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(scope.cancel)

    return cancel


class _Lookups(ThreadPoolExecutor):
    """Resolves host names, which cannot be interrupted, on threads that are never waited for."""

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
        """Return without waiting for running calls."""


def leave_lookups() -> None:
    """Make the running event loop end without waiting for address lookups.

    Otherwise a call would last as long as its lookup, regardless of its timeout.
    """
    import asyncio  # noqa: PLC0415 - as above

    asyncio.get_running_loop().set_default_executor(_Lookups())
