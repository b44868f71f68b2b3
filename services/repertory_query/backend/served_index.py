"""The index of a running server, as all callers or some of them see it."""

import time

from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.compose import Parts
from repertory.live_search.live import LiveSearch
from repertory.local.backend import Local
from repertory.search.answer import Answer
from repertory.search.query import Query
from repertory.stats import Stats
from repertory_query.records import request_usage
from repertory_query.records.recent import RecentSearches

FIRST_INDEX_S = 5.0  # that a search waits for the first index


class ServedIndex(Local):
    """An index that is updated in the background, and whose searches and uses are recorded.

    Args:
        parts: The parts of the server.
        live: The search.
        recent: Where searches are recorded.

    Attributes:
        recent: The latest searches.
    """

    def __init__(self, parts: Parts, live: LiveSearch, recent: RecentSearches) -> None:
        super().__init__(parts, live)
        self.recent = recent

    @override
    def ensure_indexed(self) -> None:
        """Do nothing, because the server indexes in the background."""

    @override
    def refresh(self) -> Stats:
        return self.stats()

    @override
    def search(self, query: Query) -> Answer:
        self.await_first_index()
        began = time.perf_counter()
        answer = super().search(query)
        self.note(answer, time.perf_counter() - began)
        return answer

    def await_first_index(self) -> None:
        """Wait briefly for the first index, if nothing is indexed yet."""
        self.live.await_first(FIRST_INDEX_S)

    def note(self, answer: Answer, seconds: float) -> None:
        """Record an answered search and its duration; it may be answered from a cache."""
        self.recent.note(answer, seconds)
        request_usage.note_search(answer, seconds)

    @override
    def item(self, item: str) -> Item:
        found = super().item(item)
        request_usage.note_use(found.id)
        return found
