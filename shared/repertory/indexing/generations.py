"""Which collection is searched, which is being filled, and which can go."""

import logging

from repertory.coordination.deltas import Deltas
from repertory.embedding.words import WORDS
from repertory.errors import StoreBusyError
from repertory.index.keywords.snapshot import SnapshotStore
from repertory.index.vectors import VectorStore
from repertory.indexing.collections import (
    alias_name,
    configuration_of,
    generations,
    model_slug,
    next_alias,
)
from repertory.indexing.job import JobQueue

ASK_AGAIN = 5.0  # seconds after which a worker is asked again for a collection
GRACE = 15.0  # seconds that a collection is kept after nothing points at it, for searches under way

_log = logging.getLogger(__name__)


class Generations:
    """The collections of one configuration at a time. All that it knows is in the store's aliases.

    Args:
        alias: Of what is searched.

    Attributes:
        in_force: What is searched; it may be another configuration's.
        target: What the configuration's items are written to; another one than that is a build.
    """

    def __init__(
        self,
        store: VectorStore,
        queue: JobQueue,
        deltas: Deltas,
        snapshots: SnapshotStore,
        alias: str,
    ) -> None:
        self._store = store
        self._queue = queue
        self._deltas = deltas
        self._snapshots = snapshots
        self._alias = alias
        self._configuration = ""
        self._asked = float("-inf")
        self._unneeded: dict[str, float] = {}
        self.in_force: str | None = None
        self.target: str | None = None

    def adopt(self, configuration: str) -> None:
        """Turn to another configuration."""
        self._configuration = configuration
        self.target = None
        self.ask()

    def ask(self) -> None:
        """Ask a worker at the next look which collection is to be filled: its model may be new."""
        self._asked = float("-inf")

    def look(self, now: float) -> set[str]:
        """See what the aliases point at.

        Returns:
            The collections that the configuration's items are written to.
        """
        if now - self._asked >= (ASK_AGAIN if self.target is None else float("inf")):
            self._queue.begin(self._configuration)
            self._asked = now
        self.in_force = self._store.alias(self._alias)
        self.target = self._store.alias(next_alias(self._configuration))
        names = {name for name in (self.in_force, self.target) if name}
        return {name for name in names if configuration_of(name) == self._configuration}

    @property
    def is_building(self) -> bool:
        """Whether what is filled is not yet searched."""
        return self.target is not None and self.target != self.in_force

    @property
    def replaces_others(self) -> bool:
        """Whether items of another configuration are searched until the build is published."""
        if self.in_force is None or configuration_of(self.in_force) == self._configuration:
            return False
        with self._store.open(self.in_force) as collection:
            return collection.count() > 0

    def publish(self) -> None:
        """Have what was filled searched from now on."""
        assert self.target
        self._queue.keep_keywords(self.target)
        self._store.set_alias(alias_name(self._configuration), self.target)
        self._store.set_alias(self._alias, self.target)
        self.in_force = self.target
        _log.info("collection_published", extra={"collection": self.target})

    def retire(self, now: float) -> None:
        """Drop a generation that nothing points at, once searches have let go of it.

        Another model's stay, for going back to it, but not what was stored without a model.
        """
        name = self.in_force
        if name is None or configuration_of(name) != self._configuration:
            return
        there = {
            one
            for slug in (model_slug(name), WORDS.slug)
            for one in generations(self._store, self._configuration, slug)
        }
        unneeded = there - {self.in_force, self.target}
        self._unneeded = {one: self._unneeded.get(one, now) for one in unneeded}
        due = [one for one, since in self._unneeded.items() if now - since >= GRACE]
        for old in due[:1]:  # one at a time: dropping may take a while
            try:
                self._store.drop(old)
            except StoreBusyError:  # a search still reads it
                return
            self._snapshots.drop(old)
            self._deltas.drop(old)
            _log.info("collection_dropped", extra={"collection": old})
