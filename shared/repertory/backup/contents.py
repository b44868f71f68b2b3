"""Summarises the contents of a backup for people."""

from repertory.backup import files
from repertory.backup.archive import Manifest

INDEXES, VECTORS = "points of indexes", "cached vectors"


def contents(manifest: Manifest) -> dict[str, tuple[int, int]]:
    """The number of entries or files and their size in bytes, for each kind of content."""
    found: dict[str, tuple[int, int]] = {}

    def add(kind: str, count: int, part: str) -> None:
        counted, size = found.get(kind, (0, 0))
        found[kind] = counted + count, size + manifest.parts[part].size

    for one in manifest.collections.values():
        add(INDEXES, one.count, one.part)
    for one in manifest.caches.values():
        add(VECTORS, one.count, one.part)
    for name in manifest.files:
        add(files.kind(name), 1, name)
    return dict(sorted(found.items()))
