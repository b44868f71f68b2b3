"""Threads for blocking calls, so that the event loop never blocks, with a bounded queue."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from enum import StrEnum
from threading import Semaphore
from typing import TypeVar

from starlette.exceptions import HTTPException

T = TypeVar("T")


class Work(StrEnum):
    """The kind of work of a call, which decides on which threads it runs."""

    SEARCH = "search"
    READ = "read"
    CALL = "call"  # a third-party server


class Pool:
    """Some threads with a bounded queue.

    Args:
        name: The prefix of the threads' names.
        threads: The number of threads.
        max_waiting: The maximum number of waiting calls; the next one is refused.
    """

    def __init__(self, name: str, threads: int, max_waiting: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._room = Semaphore(threads + max_waiting)

    async def run(self, call: Callable[[], T]) -> T:
        """Call a function on one of the threads.

        It counts towards the limit until it has ended, even if no caller waits for it any more.

        Raises:
            HTTPException: 503 if too many calls wait.
        """
        if not self._room.acquire(blocking=False):
            raise HTTPException(
                503,
                "Too many requests are waiting; try again in a second.",
                {"Retry-After": "1"},
            )
        known = copy_context()  # has the caller, for the log
        try:
            work = self._threads.submit(known.run, call)
        except BaseException:  # no more threads can be started
            self._room.release()
            raise
        work.add_done_callback(lambda _: self._room.release())
        return await asyncio.wrap_future(work)
