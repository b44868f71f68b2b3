"""Points for tests of the vector stores, with vectors of four dimensions."""

import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import item_key, point_id
from repertory.index.vectors import Match, Point

DIMENSION = 4

_ITEMS: dict[int, str] = {}  # the items of all points, by key


def direction(*numbers: float) -> NDArray[np.float32]:
    """A vector of unit length."""
    vector = np.zeros(DIMENSION, np.float32)
    vector[: len(numbers)] = numbers
    return vector / np.float32(np.linalg.norm(vector))


def point(  # noqa: PLR0913 - keyword-only arguments
    item: str,
    vector: NDArray[np.float32] | None = None,
    *,
    section: int | None = None,
    revision: int = 1,
    kind: str = "tool",
    source: str = "files",
    server: str = "",
    tags: tuple[str, ...] = (),
    record: dict[str, object] | None = None,
) -> Point:
    """A point of an item; its hashes contain the revision."""
    _ITEMS[item_key(item)] = item
    return Point(
        id=point_id(item_key(item), section),
        vector=direction(1) if vector is None else vector,
        item=item,
        section=section,
        kind=kind,
        source=source,
        server=server,
        tags=tags,
        content_hash=f"content {revision}",
        metadata_hash=f"metadata {revision}",
        revision=revision,
        record={"id": item, "revision": revision} if record is None else record,
    )


def item_of(match: Match) -> str:
    """The item id of a match whose point was created by ``point``."""
    return _ITEMS[match.key]
