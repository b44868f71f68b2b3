"""Manages which collection is searched, which one is being filled, and which are dropped."""

import logging

from repertory.coordination.deltas import MAX_ANNOUNCEMENTS
from repertory.coordination.ports import Coordination
from repertory.embedding.words import WORDS_MODEL
from repertory.errors import StoreBusyError, StoreError
from repertory.index.vectors import VectorStore
from repertory.indexing.collection_names import (
    alias_name,
    configuration_of,
    differ_in_generation,
    generations,
    model_slug,
    namespace_of,
    next_alias,
)
from repertory.indexing.job import JobQueue

REQUEST_INTERVAL_S = 5.0  # between two requests for a target collection
# A snapshot is requested after ``MIN_DELTAS`` announcements, or if more, one per ``ITEMS_OF_DELTA``
# items, so that snapshots take a small part of a build.
MIN_DELTAS, ITEMS_OF_DELTA = 1_000, 200
SNAPSHOT_INTERVAL_S = 10.0  # between two such requests
# An unused collection is kept for this time plus the time per item, because searches may still read
# it. A query process switches once it has read the new keyword index, at 1.1 ms per item.
GRACE_S, GRACE_OF_ITEM_S = 15.0, 0.002
# How often another process may replace the index. If it happens again, there is a watch service of
# another catalogue, and each would replace the other's index for ever.
MAX_REPLACED = 1

_log = logging.getLogger(__name__)


class Generations:
    """The collections of one configuration, as recorded in the store's aliases.

    Args:
        alias: The alias of the collection that is searched.

    Attributes:
        active: The collection that is searched; it may belong to another configuration.
        target: The collection that the configuration's items are written to.
    """

    def __init__(
        self, store: VectorStore, queue: JobQueue, coordination: Coordination, alias: str
    ) -> None:
        self._store = store
        self._queue = queue
        self._deltas = coordination.deltas
        self._snapshots = coordination.snapshots
        self._alias = alias
        self._namespace = namespace_of(alias)
        self._configuration = ""
        self._requested_at = self._snapshot_at = float("-inf")
        self._replaced = 0  # how often another configuration replaced this one
        self._is_built = False  # whether the configuration ever had a complete index
        self._unused_since: dict[str, float] = {}
        self.active: str | None = None
        self.target: str | None = None

    def adopt(self, configuration: str) -> None:
        """Follow another configuration."""
        self._configuration = configuration
        self._replaced = 0
        self.target = None
        self.request_target()

    def request_target(self) -> None:
        """Request the target collection at the next poll, because the model may have changed."""
        self._requested_at = float("-inf")

    def poll(self, now: float) -> set[str]:
        """Read the aliases.

        Returns:
            The collections that the configuration's items are written to.
        """
        interval = REQUEST_INTERVAL_S if self.target is None else float("inf")
        if now - self._requested_at >= interval:
            try:
                self._queue.begin(self._configuration)
            except StoreError:
                if self.target is None:
                    raise
                # The queue is full. Saves continue, and the next reconciliation requests it again.
            self._requested_at = now
        was_own = self.is_own
        target = next_alias(self._alias, self._configuration)
        own = alias_name(self._namespace, self._configuration)
        found = self._store.aliases((self._alias, target, own))  # one request on a server
        self.active, self.target = found.get(self._alias), found.get(target)
        self._replaced += was_own and self.active is not None and not self.is_own
        self._is_built = own in found
        names = {name for name in (self.active, self.target) if name}
        return {name for name in names if configuration_of(name) == self._configuration}

    @property
    def is_own(self) -> bool:
        """Whether the active collection belongs to the configuration."""
        return self.active is not None and configuration_of(self.active) == self._configuration

    @property
    def has_rival(self) -> bool:
        """Whether another watch service publishes its catalogue under the same alias."""
        return self._replaced > MAX_REPLACED

    @property
    def is_building(self) -> bool:
        """Whether the target collection is incomplete: a build, or the first index."""
        return self.target is not None and (self.target != self.active or not self._is_built)

    @property
    def is_rebuild(self) -> bool:
        """Whether the build differs from the active collection only in its generation.

        Such builds are requested by a user. Others start automatically.
        """
        if self.active is None or self.target is None:
            return False
        return differ_in_generation(self.active, self.target)

    @property
    def replaces_others(self) -> bool:
        """Whether publishing would replace items of another configuration."""
        if self.active is None or self.is_own:
            return False
        with self._store.open(self.active) as collection:
            return collection.count() > 0

    def is_ready(self) -> bool:
        """Whether the target collection can be searched fast, or replaces no other collection."""
        assert self.target
        if self.active in (None, self.target):
            return True
        with self._store.open(self.target) as collection:
            return collection.is_ready()

    def open_first(self) -> None:
        """If no collection is searched yet, make the first index searchable while it is built."""
        if self.active is None and self.target is not None and not self._is_built:
            self._store.set_alias(self._alias, self.target)
            self.active = self.target
            _log.info("first_index_opened", extra={"collection": self.target})

    def publish(self) -> None:
        """Make the complete target collection the active one."""
        assert self.target
        self._queue.keep_keywords(self.target)
        self._store.set_alias(alias_name(self._namespace, self._configuration), self.target)
        self._store.set_alias(self._alias, self.target)
        self.active, self._is_built = self.target, True
        _log.info("collection_published", extra={"collection": self.target})

    def request_snapshot(self, now: float, items: int) -> None:
        """Request a new keyword snapshot if there were many deltas since the last one.

        Args:
            now: The time, on the caller's clock.
            items: The number of items in the active collection.
        """
        name = self.active
        if name is None or not self.is_own:
            return
        if now - self._snapshot_at >= SNAPSHOT_INTERVAL_S:
            self._snapshot_at = now
            kept = min(max(MIN_DELTAS, items // ITEMS_OF_DELTA), MAX_ANNOUNCEMENTS // 2)
            if self._deltas.length(name) > kept:
                self._queue.keep_keywords(name)

    def retire(self, now: float) -> None:
        """Drop a collection that no alias points to, once no search can still read it."""
        unused = self._unused()
        self._unused_since = {one: self._unused_since.get(one, now) for one in unused}
        due = [one for one, since in self._unused_since.items() if now - since >= GRACE_S]
        if not due or self.active is None:
            return
        with self._store.open(self.active) as collection:
            grace = GRACE_S + GRACE_OF_ITEM_S * collection.count_items()
        for name in due[:1]:  # one at a time, because dropping may be slow
            if now - self._unused_since[name] >= grace:
                self.drop(name)

    def retire_now(self) -> None:
        """Drop all collections that no alias points to, unless another process has them open."""
        for name in self._unused():
            self.drop(name)

    def _unused(self) -> set[str]:
        """Old generations of the active model, and collections stored without a model.

        Collections of other models are kept, so that going back to a model costs nothing. So are
        collections with an alias, because another command of the project may search them.
        """
        name = self.active
        if name is None or not self.is_own:
            return set()
        slugs = (model_slug(name), WORDS_MODEL.slug)
        stored = {*generations(self._store, self._namespace, self._configuration, *slugs)}
        unused = stored - {self.active, self.target}
        return unused.difference(self._store.aliases().values()) if unused else unused

    def drop(self, name: str) -> None:
        """Drop a collection with its snapshot and its deltas, unless another process has it open.

        Raises:
            StoreError: A store is unavailable.
        """
        try:
            self._store.drop(name)
        except StoreBusyError:
            return
        self._snapshots.drop(name)
        self._deltas.drop(name)
        _log.info("collection_dropped", extra={"collection": name})
