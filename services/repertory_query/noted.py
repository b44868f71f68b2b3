"""What one request searched for and used, noted by services for the face that has the caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from repertory.search.answer import Answer
from repertory.usage.recorder import UsageRecorder

MAX_NOTED = 200  # searches and items of one request


class Noted(msgspec.Struct):
    """What a request did here; nothing, if it asked another server.

    Attributes:
        searches: The answers, each with the seconds that it took.
        used: The ids of the items that were read or called one by one.
    """

    searches: list[tuple[Answer, float]] = []
    used: list[str] = []

    def record(self, usage: UsageRecorder, caller: str, *, is_typed: bool = False) -> None:
        """Record it as the usage of a caller; see ``UsageRecorder``."""
        for answer, seconds in self.searches:
            usage.searched(caller, answer, seconds, is_typed=is_typed)
        if self.used:
            usage.used(caller, self.used)


_NOTED: ContextVar[Noted | None] = ContextVar("noted", default=None)


@contextmanager
def noting() -> Iterator[Noted]:
    """Note what is done within it, also on the threads that it is done on."""
    noted = Noted()
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def searched(answer: Answer, seconds: float) -> None:
    """Note a search."""
    noted = _NOTED.get()
    if noted is not None and len(noted.searches) < MAX_NOTED:
        noted.searches.append((answer, seconds))


def used(item: str) -> None:
    """Note an item that was read or called."""
    noted = _NOTED.get()
    if noted is not None and len(noted.used) < MAX_NOTED:
        noted.used.append(item)
