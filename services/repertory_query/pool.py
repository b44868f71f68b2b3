"""Threads for blocking calls, so that the event loop never blocks; a bounded number waits."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from starlette.exceptions import HTTPException

T = TypeVar("T")


class Pool:
    """Some threads with a bounded queue. For one event loop.

    Args:
        name: The prefix of the threads' names.
        threads: The number of threads.
        max_waiting: The maximum number of waiting calls; the next one is refused.
    """

    def __init__(self, name: str, threads: int, max_waiting: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._room = threads + max_waiting

    async def run(self, call: Callable[[], T]) -> T:
        """Call something on one of the threads.

        Raises:
            HTTPException: 503 if too many calls wait.
        """
        if self._room == 0:
            raise HTTPException(
                503,
                "More is asked than can be answered now; ask again in a second.",
                {"Retry-After": "1"},
            )
        self._room -= 1
        known = copy_context()  # the caller, for the log
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, known.run, call)
        finally:
            self._room += 1
