"""The collections, including caches, of configurations and models that are no longer used."""

from collections.abc import Callable, Collection

from repertory.coordination.unused_since import UnusedSince
from repertory.index.vectors import VectorStore
from repertory.indexing.collection_names import (
    cached_slug,
    is_index,
    is_of_directory,
    model_slug,
)
from repertory.watch_status import UnusedIndex

INTERVAL_S = 60.0  # between two checks


class UnusedIndexes:
    """Lists the unused collections of a team, and drops them after a while.

    Until then, going back to a configuration or a model costs nothing. An embedded store also holds
    the collections of other directories, so nothing is listed or dropped there. On a Qdrant server,
    collections with an alias of a directory are kept.

    Args:
        active: The alias of the collection that is searched. In a team it is the prefix of all of
            the team's names.
        since: Remembers since when collections are unused.
        retention_s: How long they are kept, in seconds.
        drop: Drops a collection with all that belongs to it.

    Attributes:
        listed: The unused collections that are kept, as of the last check.
    """

    def __init__(
        self,
        store: VectorStore,
        active: str,
        since: UnusedSince,
        retention_s: float,
        drop: Callable[[str], None],
    ) -> None:
        self._store = store
        self._prefix = f"{active}_"
        self._since = since
        self._retention_s = retention_s
        self._drop = drop
        self._checked_at = float("-inf")
        self.listed: list[UnusedIndex] = []

    def check(self, used: Collection[str], clock: float, now: float) -> None:
        """List unused collections, and drop expired ones; at most once per ``INTERVAL_S``.

        Args:
            used: The collections that are searched or written to.
            clock: A monotonic time, in seconds.
            now: The time, in seconds since the epoch.

        Raises:
            StoreError: A store is unavailable.
        """
        if clock - self._checked_at < INTERVAL_S:
            return
        self._checked_at = clock
        stored = [name for name in self._store.collections() if name.startswith(self._prefix)]
        aliases = self._store.aliases()
        kept = {*used, *(name for alias, name in aliases.items() if is_of_directory(alias, name))}
        unused = [name for name in stored if is_index(name) and name not in kept]
        slugs = {model_slug(name) for name in stored if is_index(name)}
        if slugs:  # without an index, the models in use are unknown
            unused += [name for name in stored if cached_slug(name) not in {"", *slugs}]
        listed = []
        for name, since in self._since.update(unused, now).items():
            if now - since >= self._retention_s:
                self._drop(name)
                continue
            with self._store.open(name) as collection:
                points = collection.count()
            listed.append(UnusedIndex(collection=name, points=points, since=since))
        self.listed = listed
