"""The part of a collection that every store shares: reads and deletions by payload."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from typing_extensions import override

from repertory.catalogue.item import item_key, point_id
from repertory.index import layout
from repertory.index.vectors import Collection, Point, State


class StoredCollection(Collection):
    """A collection whose points are stored as ``layout`` lays them out."""

    @override
    def delete_items(self, items: Sequence[str], before: int) -> None:
        self._delete(items, before, sections_only=False)

    @override
    def delete_sections(self, items: Sequence[str], before: int) -> None:
        self._delete(items, before, sections_only=True)

    @override
    def states(self, items: Sequence[str] | None = None) -> Iterator[State]:
        if items is None:
            return map(layout.state, self._scroll(layout.STATE))
        return map(layout.state, self._retrieve([item_key(item) for item in items], layout.STATE))

    @override
    def page(self, start: int, limit: int, since: int = 0) -> list[State]:
        return [*map(layout.state, self._page(point_id(start), limit, since))]

    @override
    def records(self, keys: Sequence[int]) -> dict[str, dict[str, Any]]:
        return dict(map(layout.record, self._retrieve(keys, layout.RECORD)))

    @override
    def scan(self) -> Iterator[dict[str, Any]]:
        return (layout.record(stored)[1] for stored in self._scroll(layout.RECORD))

    @override
    def points(self) -> Iterator[Point]:
        return (layout.point(*found) for found in self._scroll_whole())

    @abstractmethod
    def _scroll_whole(self) -> Iterator[tuple[UUID, Sequence[float], dict[str, Any] | None]]:
        """Every point in the order of the ids: its id, its vector and its payload."""

    @abstractmethod
    def _delete(self, items: Sequence[str], before: int, *, sections_only: bool) -> None:
        """Delete the points of these items, or only their sections, below a revision."""

    @abstractmethod
    def _retrieve(
        self, keys: Sequence[int], fields: Sequence[str]
    ) -> Iterator[dict[str, Any] | None]:
        """These payload fields of the own points of the items of these keys."""

    @abstractmethod
    def _page(self, start: UUID, limit: int, since: int) -> Iterator[dict[str, Any] | None]:
        """The state fields of own points of at least this id and revision, in the ids' order."""

    @abstractmethod
    def _scroll(self, fields: Sequence[str]) -> Iterator[dict[str, Any] | None]:
        """These payload fields of every item's own point."""
