"""The part of a collection that all stores share: reads and deletions by payload."""

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from typing_extensions import override

from repertory.catalogue.item import END_KEY, item_key, point_id
from repertory.errors import StoreCorruptError
from repertory.index import layout
from repertory.index.vectors import Collection, Point, State

_log = logging.getLogger(__name__)


class StoredCollection(Collection):
    """A collection whose points are stored in the form of ``layout``.

    A damaged point does not affect others. It is logged, and written again once its item is
    compared.
    """

    @override
    def delete_items(self, items: Sequence[str], before: int) -> None:
        self._delete(items, before, sections_only=False)

    @override
    def delete_sections(self, items: Sequence[str], before: int) -> None:
        self._delete(items, before, sections_only=True)

    @override
    def states(self, items: Sequence[str] | None = None) -> Iterator[State]:
        if items is None:
            return self._states(self._scroll(layout.STATE))
        return self._states(self._retrieve([item_key(item) for item in items], layout.STATE))

    @override
    def page(self, start: int, limit: int, since: int = 0) -> list[State]:
        states: list[State] = []
        while len(states) < limit and start < END_KEY:
            wanted = limit - len(states)
            found = [*self._page(point_id(start), wanted, since)]
            states += self._states(payload for _, payload in found)
            start = layout.key_of(found[-1][0]) + 1 if len(found) == wanted else END_KEY
        return states

    @override
    def records(self, keys: Sequence[int]) -> dict[str, dict[str, Any]]:
        records: dict[str, dict[str, Any]] = {}
        for stored in self._retrieve(keys, layout.RECORD):
            try:
                item, records[item] = layout.record(stored)
            except StoreCorruptError as error:
                _log_unreadable(self.name, str((stored or {}).get("item")), str(error))
        return records

    @override
    def scan(self) -> Iterator[dict[str, Any]]:
        return (layout.record(stored)[1] for stored in self._scroll(layout.RECORD))

    @override
    def points(self) -> Iterator[Point]:
        return (layout.point(*found) for found in self._scroll_whole())

    def _states(self, found: Iterable[dict[str, Any] | None]) -> Iterator[State]:
        for stored in found:
            state = layout.state(stored)
            if state is None or state.metadata_hash == layout.UNREADABLE:
                _log_unreadable(
                    self.name, str((stored or {}).get("item")), "Its payload is damaged."
                )
            if state is not None:
                yield state

    @abstractmethod
    def _scroll_whole(self) -> Iterator[tuple[UUID, Sequence[float], dict[str, Any] | None]]:
        """All points in the order of their ids, as id, vector and payload."""

    @abstractmethod
    def _delete(self, items: Sequence[str], before: int, *, sections_only: bool) -> None:
        """Delete the points of these items, or only their sections, below a revision."""

    @abstractmethod
    def _retrieve(
        self, keys: Sequence[int], fields: Sequence[str]
    ) -> Iterator[dict[str, Any] | None]:
        """The payload fields of the own points of the items with these keys."""

    @abstractmethod
    def _page(
        self, start: UUID, limit: int, since: int
    ) -> Iterator[tuple[UUID, dict[str, Any] | None]]:
        """The ids and the state fields of own points, in the order of their ids.

        Args:
            start: The lowest id.
            limit: The maximum number of points; a shorter page is the last one.
            since: The lowest revision.
        """

    @abstractmethod
    def _scroll(self, fields: Sequence[str]) -> Iterator[dict[str, Any] | None]:
        """The payload fields of all own points."""


@lru_cache(maxsize=1_000)
def _log_unreadable(collection: str, item: str, error: str) -> None:
    """Log an unreadable point, once per process."""
    extra = {"collection": collection, "item": item, "error": error}
    _log.warning("point_unreadable", extra=extra)
