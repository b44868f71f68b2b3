"""The keyword index of one collection, kept equal to it: a snapshot first, then its deltas."""

import contextlib
import logging
import time

from repertory.coordination.claims import Claims
from repertory.coordination.deltas import Deltas
from repertory.errors import StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import SnapshotStore
from repertory.index.vectors import Collection
from repertory.indexing import keywords

BUILDING = 60.0  # seconds that building is left to whoever said to do it
_LOOK_AGAIN = 0.2  # seconds, while another process builds

_log = logging.getLogger(__name__)


class KeywordFeed:
    """The keyword index of a collection as it changes. For one thread.

    Attributes:
        index: The index; a new object after each change.
        revision: Grows with each change.
    """

    def __init__(
        self, collection: Collection, snapshots: SnapshotStore, deltas: Deltas, claims: Claims
    ) -> None:
        self.collection = collection
        self.index = KeywordIndex.empty()
        self.revision = 0
        self._position = ""
        self._snapshots = snapshots
        self._deltas = deltas
        self._claims = claims

    def open(self) -> None:
        """Load the snapshot, or build the index where there is none that can be read.

        One process builds at a time; the others wait for its snapshot. Without snapshots, deltas
        and claims, an index is built all the same.

        Raises:
            StoreError: The collection cannot be read.
        """
        name = f"keywords:{self.collection.name}"
        deadline = time.monotonic() + BUILDING
        mine = False
        try:
            while not (mine or self._load()) and time.monotonic() < deadline:
                mine = bool(self._claims.take([name], BUILDING))
                if not mine:
                    time.sleep(_LOOK_AGAIN)
        except StoreError as error:
            _log.warning("keywords_without_snapshot", extra={"error": str(error)})
        if len(self.index):
            return
        try:
            self.compare()
            with contextlib.suppress(StoreError):
                self.save()
        finally:
            if mine:
                with contextlib.suppress(StoreError):
                    self._claims.release([name])

    def advance(self, wait: float = 0.0) -> bool:
        """Follow what was announced since; what was missed is found by comparing hashes.

        Args:
            wait: Seconds to wait for an announcement.

        Returns:
            Whether the index changed.

        Raises:
            StoreError: The deltas or the collection cannot be read; nothing is lost by that.
        """
        delta = self._deltas.since(self.collection.name, self._position, wait)
        if delta.gap:
            changed = self.compare()
        else:
            rows = self.index.row_of
            news = [
                item
                for item, found in delta.hashes.items()
                if (self.index.entries[rows[item]].hash if item in rows else "") != found
            ]
            # What is announced may be out of date by now: the collection says what holds.
            index, revision = keywords.refreshed(self.index, news, self.collection)
            changed = self._take(index, revision)
        self._position = delta.position
        return changed

    def compare(self) -> bool:
        """Make the index equal to the collection by the hashes of both.

        Returns:
            Whether it was not.

        Raises:
            StoreError: The collection cannot be read.
        """
        with contextlib.suppress(StoreError):
            self._position = self._deltas.position(self.collection.name)
        states = {state.item: state for state in self.collection.states()}
        index = keywords.synchronised(self.index, states, {}, self.collection)
        revision = max((state.revision for state in states.values()), default=0)
        return self._take(index, revision)

    def save(self) -> None:
        """Store the index, and forget the deltas that are in it.

        Raises:
            StoreError: It cannot be stored.
        """
        name = self.collection.name
        keywords.save(self._snapshots, name, self.index, self.revision, self._position)
        self._deltas.trim(name, self._position)

    def _load(self) -> bool:
        stored = keywords.load(self._snapshots, self.collection.name)
        if stored is None:
            return False
        self.index, self.revision, self._position = stored
        return True

    def _take(self, index: KeywordIndex, revision: int) -> bool:
        if index is self.index:
            return False
        self.index = index
        # A removal leaves no revision behind, and is a change all the same.
        self.revision = max(self.revision + 1, revision)
        return True
