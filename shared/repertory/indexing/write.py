"""Writes items as points of a collection."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from repertory.catalogue.item import Item, item_key, point_id
from repertory.embedding.models import Model
from repertory.index.cache import Vector, vector_key
from repertory.index.vectors import Collection, Point

BATCH_SIZE = 100  # items


def write(
    collection: Collection,
    items: Sequence[Item],
    revision: int,
    model: Model,
    vectors: Mapping[bytes, Vector],
) -> None:
    """Write items, and delete their old sections.

    Args:
        collection: The collection, in which newer revisions are not overwritten.
        items: The items.
        revision: Their revision.
        model: The model of the vectors.
        vectors: The vectors of all their texts, by ``vector_key``.
    """
    for start in range(0, len(items), BATCH_SIZE):
        batch = items[start : start + BATCH_SIZE]
        points = list(_points(batch, revision, model, vectors))
        # The item's own point is written last, because its hash means that all points are stored.
        collection.upsert([point for point in points if point.section is not None])
        collection.delete_sections([item.id for item in batch], before=revision)
        collection.upsert([point for point in points if point.section is None])


def _points(
    items: Sequence[Item], revision: int, model: Model, vectors: Mapping[bytes, Vector]
) -> Iterator[Point]:
    for item in items:
        for view in item.views():
            yield Point(
                id=point_id(item_key(item.id), view.section),
                vector=vectors[vector_key(model, view.text)],
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
