"""The ledger of a collection: the items that it will hold once every pending job is done."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, islice, takewhile
from typing import NamedTuple

from repertory.catalogue.item import KEY_BYTES, Item, item_key
from repertory.coordination.deltas import REMOVED
from repertory.index.vectors import State
from repertory.watch_status import Building

NEVER = float("-inf")
MAX_SAVED = 1_000  # a change of up to this many items counts as saves, which are sent first
MAX_VERSIONS = 3  # pending versions of an item; a newer save then waits for one of them
_BUCKET_SHIFT = 8 * KEY_BYTES - 12  # 4,096 buckets


class SentItem(NamedTuple):
    """A pending item: sent in a job, and not confirmed yet.

    Attributes:
        hash: Its metadata hash; ``REMOVED`` for a deletion.
        revision: The revision of its job.
        queue: The queue of the job; empty if it could not be queued.
        at: When it was sent, on the caller's clock; ``NEVER`` if it could not be queued.
        change: The kind of change: ``added``, ``changed`` or ``removed``.
        since: When this change was first sent; a lost item is sent again.
    """

    hash: str
    revision: int
    queue: str
    at: float
    change: str
    since: float


class Batch(NamedTuple):
    """The items to write and the ids of those to remove."""

    items: list[Item]
    removed: list[str]


class Ledger:
    """The indexed, pending and waiting items of one collection. Pure: no input or output.

    Attributes:
        collection: The collection's name.
        states: The state of each item once the pending jobs are done.
        pending: The items that were sent and are not confirmed.
        failed: The hashes that failed, by item; they are not sent again.
        position: The position up to which the deltas were read.
        counts: The number of items sent so far, by kind of change.
        newest: The newest revision that is known.
    """

    def __init__(self, collection: str) -> None:
        self.collection = collection
        self.states: dict[str, State] = {}
        self.pending: dict[str, SentItem] = {}
        self.failed: dict[str, str] = {}
        self.position = ""
        self.counts: Counter[str] = Counter()
        self.newest = 0
        # Items waiting to be sent, by id, in order; None means a removal.
        self._saved: dict[str, Item | None] = {}  # sent before the backlog
        self._backlog: dict[str, Item | None] = {}
        self._new: set[str] = set()  # the waiting items that the states do not have
        # Earlier versions of pending items that were sent, too, by item and hash.
        self._superseded: dict[str, dict[str, SentItem]] = {}
        self._lost: dict[str, SentItem] = {}  # lost items, until they are sent again
        self._unclear: set[str] = set()  # items whose stored state is unknown
        self._confirmed: dict[str, int] = {}  # the newest confirmed revision, by queue
        self._per_source: Counter[str] | None = None
        self._buckets: dict[int, set[str]] = {}  # items by the first bits of their keys

    def load(self, states: Iterable[State], *, deleted: int = 0) -> None:
        """Start with the collection's current items.

        Args:
            states: Their states.
            deleted: The newest revision of a deletion.
        """
        self.start_after(deleted)
        for state in states:
            self._set(state.item, state)
            self.start_after(state.revision)

    def start_after(self, revision: int) -> None:
        """Use only higher revisions from now on."""
        self.newest = max(self.newest, revision)

    def compare(self, stored: Sequence[State], start: int, end: int) -> set[str]:
        """Correct the states in a range of keys to those of the collection; see ``item_key``.

        Args:
            stored: The stored states in that range.
            start: The lowest key.
            end: The key after the highest one.

        Returns:
            The items that differed. Pending items stay pending, unless the store shows that their
            job was done.
        """
        there = {state.item: state for state in stored}
        self.start_after(max((one.revision for one in stored), default=0))
        buckets = range(start >> _BUCKET_SHIFT, ((end - 1) >> _BUCKET_SHIFT) + 1)
        known = [item for at in buckets for item in self._buckets.get(at, ())]
        gone = [item for item in known if item not in there and start <= item_key(item) < end]
        differing = set()
        for item in [*there, *gone]:
            state, sent = there.get(item), self.pending.get(item)
            if sent is not None and (state is None or state.revision < sent.revision):
                continue
            if sent is not None:
                self._end(item)  # its job was done, but the announcement was missed
            before = self.states.get(item)
            if state is None or before is None or before.metadata_hash != state.metadata_hash:
                differing.add(item)
                self._set(item, state)
        return differing

    def queue(
        self,
        items: Sequence[Item],
        removed: Sequence[str] = (),
        compared: Collection[str] | None = None,
    ) -> None:
        """Add items to those that wait to be sent.

        Args:
            items: The items to write.
            removed: The ids of the items to remove.
            compared: The ids of the compared items, whose waiting entries are replaced; None if
                all items were compared.

        A small change, such as a save, is sent before all others. Of a large change, removals are
        sent first, because they are fast and removed items are found until then.
        """
        if compared is None:
            self._backlog.clear()
            self._saved.clear()
            self._new.clear()
        self._unqueue(compared or ())
        gone: dict[str, Item | None] = dict.fromkeys(removed)
        written: dict[str, Item | None] = {item.id: item for item in items}
        if len(gone) + len(written) <= MAX_SAVED:
            self._saved |= gone | written
        else:
            if gone:
                self._backlog = gone | self._backlog
            self._backlog |= written
        self._new.update(item.id for item in items if item.id not in self.states)

    def next_saves(self, window: int) -> Batch:
        """The next waiting saves, so that at most ``window + MAX_SAVED`` items are pending.

        They wait until ``send``. Removals of large changes come after the saves, because items that
        must be embedded may be pending for minutes. Held items are left out, or the queue would
        grow with each save while no worker runs.
        """
        saved = (one for one in self._saved.items() if not self.is_held(one[0]))
        removals = takewhile(lambda one: one[1] is None, self._backlog.items())
        return _first(chain(saved, removals), window + MAX_SAVED - len(self.pending))

    def next_batch(self, window: int) -> Batch:
        """The next items of the backlog, so that at most ``window`` items are pending.

        They wait until ``send``. The window is refilled once half of it is free, not item by item.
        """
        room = window - len(self.pending)
        is_refilled = len(self._backlog) <= room or room >= window // 2
        return _first(self._backlog.items(), room if is_refilled else 0)

    def send(
        self,
        items: Sequence[Item],
        removed: Sequence[str],
        *,
        queue: str,
        milliseconds: int,
        now: float,
    ) -> int:
        """Mark items as pending.

        Returns:
            Their revision, which is higher than every earlier one, even if the clock went back.
        """
        self.newest = revision = max(self.newest + 1, milliseconds)
        self._unqueue([*(item.id for item in items), *removed])
        for item in items:
            change = "changed" if item.id in self.states else "added"
            state = State(
                item=item.id,
                source=item.source,
                content_hash="",  # not compared here
                metadata_hash=item.metadata_hash(),
                revision=revision,
            )
            self._set(item.id, state)
            self._mark(item.id, SentItem(state.metadata_hash, revision, queue, now, change, now))
        for gone in removed:
            self._set(gone, None)
            self._mark(gone, SentItem(REMOVED, revision, queue, now, "removed", now))
        return revision

    def not_queued(self, items: Iterable[str]) -> None:
        """Mark pending items as lost, because their job could not be queued."""
        for item in items:
            self.pending[item] = self.pending[item]._replace(queue="", at=NEVER)

    def confirm(self, hashes: Mapping[str, str]) -> list[SentItem]:
        """Mark announced items as done. An item with an unexpected hash becomes unclear.

        Returns:
            The pending items that were done.
        """
        done = []
        for item, found in hashes.items():
            sent = self.pending.get(item)
            if sent is None:
                state = self.states.get(item)
                if found != (state.metadata_hash if state else REMOVED):
                    self._unclear.add(item)
            elif sent.hash == found:
                done.append(self._end(item))
                self._overtake(sent)
            elif older := self._superseded.get(item, {}).get(found):
                self._overtake(older)
                self._forget(item, older.revision)
        return done

    def fail(self, hashes: Mapping[str, str]) -> set[str]:
        """Stop waiting for failed items.

        Args:
            hashes: The hashes of all failed items.

        Returns:
            The items that failed before and may be sent again.
        """
        for item, found in hashes.items():
            if item in self.pending and self.pending[item].hash == found:
                self._take_back(item)
                self._unclear.add(item)  # an older version may be stored
        forgiven = {item for item, found in self.failed.items() if hashes.get(item) != found}
        self.failed = dict(hashes)
        return forgiven

    def unclear(self, before: float, waiting: Callable[[], Mapping[str, int]]) -> list[str]:
        """The items that must be read from the collection, and sent again if they differ.

        These are unclear items, and lost ones. A pending item that was sent before a time counts as
        lost if its queue is empty, or if a later item of that queue was confirmed.

        Args:
            before: The time, on the caller's clock.
            waiting: Returns the number of waiting jobs by queue; called only if needed.
        """
        old = {item: sent for item, sent in self.pending.items() if sent.at < before}
        lengths = waiting() if old else {}
        lost = {
            item
            for item, sent in old.items()
            if not lengths.get(sent.queue) or sent.revision < self._confirmed.get(sent.queue, 0)
        }
        return sorted(lost | self._unclear)

    def correct(self, items: Iterable[str], states: Iterable[State]) -> None:
        """Replace the states of some items by the stored ones, and end their pending state."""
        stored = {state.item: state for state in states}
        self.start_after(max((one.revision for one in stored.values()), default=0))
        for item in items:
            state = stored.get(item)
            if sent := self.pending.get(item):
                self._take_back(item)
                if sent.hash != (state.metadata_hash if state else REMOVED):
                    self._lost[item] = sent
            self._set(item, state)
            self._unclear.discard(item)

    @property
    def outstanding(self) -> int:
        """How many items are pending or wait to be sent."""
        return len(self.pending) + len(self._saved) + len(self._backlog)

    @property
    def waits(self) -> bool:
        """Whether items wait to be sent that are not held."""
        return bool(self._backlog) or not all(map(self.is_held, self._saved))

    def is_held(self, item: str) -> bool:
        """Whether a waiting save is held until one of its ``MAX_VERSIONS`` pending ones is done."""
        return item in self._saved and len(self._superseded.get(item, ())) + 1 >= MAX_VERSIONS

    def is_pending_since(self, time: float) -> bool:
        """Whether any pending version of an item was first sent at or before a time."""
        older = (one.values() for one in self._superseded.values())
        return any(sent.since <= time for sent in chain(self.pending.values(), *older))

    @property
    def has_backlog(self) -> bool:
        """Whether items of a large change wait to be sent."""
        return bool(self._backlog)

    @property
    def has_items(self) -> bool:
        """Whether any item is known to be stored."""
        return self._stored > 0

    @property
    def _stored(self) -> int:
        """The number of stored items, without those whose write is pending."""
        return len(self.states) - sum(sent.hash != REMOVED for sent in self.pending.values())

    def unwritten(self) -> list[str]:
        """The ids of the items that are pending or wait to be sent."""
        return [*self.pending, *self._saved, *self._backlog]

    @property
    def written(self) -> Counter[str]:
        """The number of items written so far, by kind of change."""
        return self.counts - Counter(sent.change for sent in self.pending.values())

    def progress(self) -> tuple[int, int]:
        """How many of the differing items were written so far, and their total number."""
        sent = self.counts.total()
        return sent - len(self.pending), sent - len(self.pending) + self.outstanding

    def building(self) -> Building:
        """How many items the collection holds, and how many it will hold."""
        total = len(self.states) + len(self._new)
        return Building(collection=self.collection, done=self._stored, total=total)

    @property
    def per_source(self) -> Counter[str]:
        """The number of stored items of each source, without new ones that are pending."""
        if self._per_source is None:
            self._per_source = Counter(state.source for state in self.states.values())
        new = [item for item, sent in self.pending.items() if sent.change == "added"]
        return self._per_source - Counter(self.states[item].source for item in new)

    def _unqueue(self, items: Iterable[str]) -> None:
        """Remove items from those that wait to be sent."""
        for item in items:
            self._saved.pop(item, None)
            self._backlog.pop(item, None)
            self._new.discard(item)

    def _set(self, item: str, state: State | None) -> None:
        """Replace the state of an item, or remove it."""
        before = self.states.pop(item, None)
        if self._per_source is not None:
            self._per_source.subtract([before.source] if before else ())
            self._per_source.update([state.source] if state else ())
        if state is not None:
            self.states[item] = state
            self._bucket(item).add(item)
            self._new.discard(item)
        else:
            self._bucket(item).discard(item)
            if self._saved.get(item) or self._backlog.get(item):
                self._new.add(item)

    def _bucket(self, item: str) -> set[str]:
        return self._buckets.setdefault(item_key(item) >> _BUCKET_SHIFT, set())

    def _mark(self, item: str, sent: SentItem) -> None:
        if older := self.pending.get(item):
            self._superseded.setdefault(item, {})[older.hash] = older
        lost = self._lost.pop(item, None)
        if lost and lost.hash == sent.hash:
            sent = sent._replace(since=lost.since)
        self.counts[sent.change] += 1
        self.pending[item] = sent

    def _forget(self, item: str, revision: int) -> None:
        """Forget the versions of a pending item up to a revision, whose jobs are done or lost."""
        kept = {key: one for key, one in self._superseded[item].items() if one.revision > revision}
        if kept:
            self._superseded[item] = kept
        else:
            del self._superseded[item]

    def _end(self, item: str) -> SentItem:
        self._superseded.pop(item, None)
        return self.pending.pop(item)

    def _take_back(self, item: str) -> None:
        self.counts[self._end(item).change] -= 1

    def _overtake(self, sent: SentItem) -> None:
        """Record that earlier jobs in the same queue have had their turn."""
        newest = self._confirmed.get(sent.queue, 0)
        self._confirmed[sent.queue] = max(newest, sent.revision)


def _first(waiting: Iterable[tuple[str, Item | None]], count: int) -> Batch:
    """The first ``count`` waiting items; None means a removal."""
    batch = dict(islice(waiting, max(count, 0)))
    removed = [item_id for item_id, item in batch.items() if item is None]
    return Batch([item for item in batch.values() if item is not None], removed)
