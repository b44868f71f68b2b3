"""Each search with what its caller used afterwards."""

from collections import defaultdict, deque
from collections.abc import Iterable, Reversible

import msgspec

from repertory.usage.events import Event, Search, Use

USED_WITHIN_S = 600.0  # time after a search in which the use of a hit counts for the search
FOLLOWED_WITHIN_S = 120.0  # time in which another used item may be what the caller looked for
MAX_OPEN = 200  # latest searches of a caller that a use is compared with


class Outcome(msgspec.Struct, kw_only=True, eq=False):
    """A search and its outcome.

    Attributes:
        search: The search.
        used: The hits that the caller used afterwards.
        followed: Other items that the caller used soon afterwards.
    """

    search: Search
    used: list[str] = []
    followed: list[str] = []


def outcomes(events: Iterable[Event]) -> list[Outcome]:
    """The searches with their outcomes, oldest first.

    A search whose query was typed further is left out, unless one of its hits was used.
    """
    found: list[Outcome] = []
    continued: set[int] = set()
    opened: defaultdict[str, deque[Outcome]] = defaultdict(lambda: deque(maxlen=MAX_OPEN))
    for event in sorted(events, key=lambda one: one.at):
        if isinstance(event, Search):
            before = opened[event.caller]
            if event.continues and before and not before[-1].used:
                continued.add(id(before.pop()))
            outcome = Outcome(search=event)
            found.append(outcome)
            before.append(outcome)
        elif isinstance(event, Use):
            _add_use(opened[event.caller], event)
    return [one for one in found if id(one) not in continued]


def _add_use(searches: Reversible[Outcome], use: Use) -> None:
    for outcome in reversed(searches):
        elapsed = use.at - outcome.search.at
        if elapsed > USED_WITHIN_S:
            return
        is_hit = use.item in outcome.search.named
        known = outcome.used if is_hit else outcome.followed
        if (is_hit or elapsed <= FOLLOWED_WITHIN_S) and use.item not in known:
            known.append(use.item)
