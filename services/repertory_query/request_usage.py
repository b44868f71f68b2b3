"""What one request searched for and used, collected for the interface that has the caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from repertory.search.answer import Answer
from repertory.usage.recorder import UsageRecorder

MAX_NOTED = 200  # searches and items of one request


class RequestUsage(msgspec.Struct):
    """What a request did here; nothing, if it asked another server.

    Attributes:
        searches: The answers, each with the seconds that it took.
        used: The ids of the items that were read or called one by one.
    """

    searches: list[tuple[Answer, float]] = []
    used: list[str] = []

    def record(self, recorder: UsageRecorder, caller: str, *, is_typed: bool = False) -> None:
        """Record it as the usage of a caller; see ``UsageRecorder``."""
        for answer, seconds in self.searches:
            recorder.searched(caller, answer, seconds, is_typed=is_typed)
        if self.used:
            recorder.used(caller, self.used)


_CURRENT: ContextVar[RequestUsage | None] = ContextVar("request_usage", default=None)


@contextmanager
def collecting() -> Iterator[RequestUsage]:
    """Collect the searches and uses that the block notes, also on the threads of its calls."""
    usage = RequestUsage()
    token = _CURRENT.set(usage)
    try:
        yield usage
    finally:
        _CURRENT.reset(token)


def note_search(answer: Answer, seconds: float) -> None:
    """Note a search."""
    usage = _CURRENT.get()
    if usage is not None and len(usage.searches) < MAX_NOTED:
        usage.searches.append((answer, seconds))


def note_use(item: str) -> None:
    """Note an item that was read or called."""
    usage = _CURRENT.get()
    if usage is not None and len(usage.used) < MAX_NOTED:
        usage.used.append(item)
