"""The keyword index of one collection, kept equal to it: a snapshot first, then its deltas."""

import contextlib
import logging
import time

from repertory.coordination.team import Coordination
from repertory.errors import StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Collection
from repertory.indexing import keywords

BUILD_CLAIM_S = 60.0  # that other processes wait for the one that builds the index
POLL_INTERVAL_S = 0.2  # while another process builds it

_log = logging.getLogger(__name__)


class KeywordFeed:
    """The keyword index of a collection as it changes. Not thread-safe.

    Attributes:
        collection: The collection.
        index: The index; a new object after each change.
        revision: Grows with each change.
    """

    def __init__(self, collection: Collection, coordination: Coordination) -> None:
        self.collection = collection
        self.index = KeywordIndex.empty()
        self.revision = 0
        self._position = ""
        self._snapshots = coordination.snapshots
        self._deltas = coordination.deltas
        self._claims = coordination.claims

    def open(self) -> None:
        """Load the snapshot, or build the index if no snapshot is readable.

        One process builds at a time; the others wait for its snapshot. The index is also built if
        snapshots, deltas and claims are unavailable.

        Raises:
            StoreError: The collection is unreadable.
        """
        claim = f"keywords:{self.collection.name}"
        deadline = time.monotonic() + BUILD_CLAIM_S
        is_ours = False
        try:
            while not (is_ours or self._load()) and time.monotonic() < deadline:
                is_ours = bool(self._claims.take([claim], BUILD_CLAIM_S))
                if not is_ours:
                    time.sleep(POLL_INTERVAL_S)
        except StoreError as error:
            _log.warning("keywords_without_snapshot", extra={"error": str(error)})
        if len(self.index):
            return
        try:
            self.compare()
            with contextlib.suppress(StoreError):
                self.save()
        finally:
            if is_ours:
                with contextlib.suppress(StoreError):
                    self._claims.release([claim])

    def advance(self, wait: float = 0.0) -> bool:
        """Apply announced changes; a gap is closed by comparing hashes.

        Args:
            wait: Seconds to wait for an announcement.

        Returns:
            Whether the index changed.

        Raises:
            StoreError: The deltas or the collection are unavailable; nothing is lost.
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
            # An announcement may be outdated by now: the collection decides.
            index, revision = keywords.refreshed(self.index, news, self.collection)
            changed = self._replace(index, revision)
        self._position = delta.position
        return changed

    def compare(self) -> bool:
        """Make the index equal to the collection by comparing all hashes.

        Returns:
            Whether the index changed.

        Raises:
            StoreError: The collection is unreadable.
        """
        with contextlib.suppress(StoreError):
            self._position = self._deltas.position(self.collection.name)
        states = {state.item: state for state in self.collection.states()}
        index = keywords.synchronised(self.index, states, self.collection)
        revision = max((state.revision for state in states.values()), default=0)
        return self._replace(index, revision)

    def save(self) -> None:
        """Store the index as a snapshot, and drop the deltas that it includes.

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

    def _replace(self, index: KeywordIndex, revision: int) -> bool:
        if index is self.index:
            return False
        self.index = index
        # A removal leaves no revision behind, but it is a change.
        self.revision = max(self.revision + 1, revision)
        return True
