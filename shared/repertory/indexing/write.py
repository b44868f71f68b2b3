"""The fourth stage: items as points of a collection, their vectors from the cache."""

from collections.abc import Iterator, Sequence

import msgspec

from repertory.catalogue.item import Item, item_key, point_id
from repertory.embedding.models import Model
from repertory.index.cache import VectorCache, vector_key
from repertory.index.vectors import Collection, Point

WRITE_AT_ONCE = 100  # items


def write(
    collection: Collection, items: Sequence[Item], revision: int, model: Model, cache: VectorCache
) -> Iterator[int]:
    """Write items whose vectors the cache has, and take their old sections away.

    Yields:
        How many items were just written.
    """
    for start in range(0, len(items), WRITE_AT_ONCE):
        batch = items[start : start + WRITE_AT_ONCE]
        points = list(_points(batch, revision, model, cache))
        # An item's own point, whose hash tells the next run that all of it is there, is last.
        collection.upsert([point for point in points if point.section is not None])
        collection.delete_sections([item.id for item in batch], before=revision)
        collection.upsert([point for point in points if point.section is None])
        yield len(batch)


def _points(
    items: Sequence[Item], revision: int, model: Model, cache: VectorCache
) -> Iterator[Point]:
    views = [(item, view) for item in items for view in item.views()]
    keys = [vector_key(model, view.text) for _, view in views]
    vectors = cache.get(list(dict.fromkeys(keys)))
    for (item, view), key in zip(views, keys, strict=True):
        yield Point(
            id=point_id(item_key(item.id), view.section),
            vector=vectors[key],
            item=item.id,
            section=view.section,
            kind=item.kind,
            source=item.source,
            server=item.server,
            tags=item.tags,
            content_hash=item.content_hash(),
            metadata_hash=item.metadata_hash(),
            revision=revision,
            record={"heading": view.heading}
            if view.section is not None
            else msgspec.to_builtins(item),
        )
