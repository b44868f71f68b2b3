"""The ledger tracks pending, lost and failed writes and the progress of a build."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.item import Item, item_key
from repertory.index.vectors import State
from repertory.indexing import ledger as ledger_module
from repertory.indexing.ledger import MAX_SAVED, MAX_VERSIONS, NEVER, Ledger
from tests.support.builders import skill

QUEUE, OTHER = "saves", "builds"


def state_of(item: Item, revision: int) -> State:
    """The state of a stored item."""
    return State(
        item=item.id,
        source=item.source,
        content_hash="",
        metadata_hash=item.metadata_hash(),
        revision=revision,
    )


def send(
    ledger: Ledger,
    *items: Item,
    removed: Sequence[str] = (),
    at: float = 0.0,
    queue: str = QUEUE,
) -> int:
    """Send items and removals; the revision of the batch."""
    return ledger.send(items, removed, queue=queue, milliseconds=0, now=at)


def confirm(ledger: Ledger, *items: Item) -> None:
    """Announce items as written."""
    ledger.confirm({item.id: item.metadata_hash() for item in items})


def unclear(ledger: Ledger, before: float, **waiting: int) -> list[str]:
    """The items to check: sent before a time and probably lost."""
    return ledger.unclear(before, lambda: waiting)


@pytest.fixture
def ledger() -> Ledger:
    """The ledger of an empty collection."""
    return Ledger("c")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the items that count as a few, which are sent before all others, to three."""
    monkeypatch.setattr(ledger_module, "MAX_SAVED", 3)


A, B, C = skill("a"), skill("b"), skill("c")


def test_a_new_ledger_has_read_nothing(ledger: Ledger) -> None:
    """It has the name of its collection, no position and no outstanding items."""
    assert (ledger.collection, ledger.position) == ("c", "")
    assert not ledger.outstanding


def test_an_item_sent_before_a_time_is_lost_if_its_queue_is_empty(ledger: Ledger) -> None:
    """While its queue has jobs, it may still arrive; other queues do not matter."""
    send(ledger, A, at=1.0)
    send(ledger, B, at=2.0)
    assert unclear(ledger, 1.0) == []
    assert unclear(ledger, 1.5) == [A.id]
    assert unclear(ledger, 3.0) == [A.id, B.id]
    assert unclear(ledger, 3.0, saves=1) == []
    assert unclear(ledger, 3.0, builds=1) == [A.id, B.id]


def test_an_overtaken_item_is_lost_even_if_its_queue_is_full(ledger: Ledger) -> None:
    """A queue is in order, so a confirmation of a later item means that the earlier one is lost."""
    send(ledger, A, at=1.0)
    send(ledger, B, at=2.0)
    send(ledger, C, at=3.0)
    confirm(ledger, B)
    assert unclear(ledger, 1.0, saves=9) == []
    assert unclear(ledger, 5.0, saves=9) == [A.id]


def test_a_confirmation_of_the_same_batch_overtakes_nothing(ledger: Ledger) -> None:
    """Several workers do the jobs of one batch, in any order."""
    send(ledger, A, B, at=1.0)
    confirm(ledger, B)
    assert unclear(ledger, 5.0, saves=1) == []


def test_a_confirmation_of_another_queue_overtakes_nothing(ledger: Ledger) -> None:
    """Saves are processed before builds."""
    send(ledger, A, at=1.0, queue=OTHER)
    send(ledger, B, at=2.0)
    confirm(ledger, B)
    assert unclear(ledger, 5.0, builds=1) == []


def test_a_late_confirmation_does_not_replace_a_newer_one(ledger: Ledger) -> None:
    """Confirmations come in any order; items between the two have still been overtaken."""
    send(ledger, A, at=1.0)
    send(ledger, B, at=2.0)
    send(ledger, C, at=3.0)
    confirm(ledger, C)
    confirm(ledger, A)
    assert unclear(ledger, 5.0, saves=1) == [B.id]


def test_a_confirmation_of_an_older_version_overtakes_others(ledger: Ledger) -> None:
    """An item that is saved constantly is always confirmed in an older version than the last."""
    send(ledger, A, at=1.0)
    send(ledger, B, at=2.0)
    for number in range(3):
        send(ledger, skill("b", f"{number}"), at=3.0)
    confirm(ledger, skill("b", "unknown"))
    assert unclear(ledger, 2.0, saves=9) == []
    confirm(ledger, B)
    assert unclear(ledger, 2.0, saves=9) == [A.id]
    assert B.id in ledger.pending


def test_versions_that_were_done_together_hold_no_save(ledger: Ledger) -> None:
    """Only the newest of them is announced, but none of them waits in the queue any more."""
    versions = [skill("a", f"{number}") for number in range(MAX_VERSIONS + 2)]
    for version in versions[:MAX_VERSIONS]:
        send(ledger, version)
    confirm(ledger, versions[MAX_VERSIONS - 2])
    for version in versions[MAX_VERSIONS:]:
        ledger.queue([version], compared=[A.id])
        assert ledger.next_saves(9) == ([version], [])
        send(ledger, version)


def test_the_queue_length_is_read_only_if_it_matters(ledger: Ledger) -> None:
    """Reading it costs a request."""
    send(ledger, A, at=1.0)

    def waiting() -> dict[str, int]:
        raise AssertionError

    assert ledger.unclear(1.0, waiting) == []


def test_an_item_that_could_not_be_queued_is_lost_at_once(ledger: Ledger) -> None:
    """Jobs that wait in the queue do not delay this."""
    send(ledger, A, B, at=1.0)
    ledger.not_queued([B.id])
    assert (ledger.pending[B.id].queue, ledger.pending[B.id].at) == ("", NEVER)
    assert unclear(ledger, 1.0, saves=1) == [B.id]


def test_a_lost_item_is_sent_again_only_if_it_is_not_stored(ledger: Ledger) -> None:
    """An item that was stored although its announcement was lost is confirmed instead."""
    revision = send(ledger, A, B, removed=["team/c"], at=1.0)
    ledger.correct([A.id, B.id, C.id], [state_of(A, revision), state_of(C, 0)])
    assert not ledger.outstanding
    assert set(ledger.states) == {A.id, C.id}
    assert ledger.counts == {"added": 0, "removed": 0}


def test_a_lost_change_waits_since_it_was_first_sent(ledger: Ledger) -> None:
    """A newer version of the item is another change."""
    send(ledger, A, B, at=1.0)
    ledger.correct([A.id, B.id], [])
    send(ledger, A, skill("b", "Newer"), at=20.0)
    assert [sent.since for sent in ledger.pending.values()] == [1.0, 20.0]
    assert ledger.is_pending_since(1.0)
    assert not ledger.is_pending_since(0.9)


def test_an_announcement_of_an_older_version_does_not_confirm_a_newer_write(ledger: Ledger) -> None:
    """Only the hash that was sent last confirms an item."""
    newer = skill("a", "Newer")
    send(ledger, A)
    send(ledger, newer)
    confirm(ledger, A)
    ledger.confirm({A.id: ""})
    assert ledger.pending
    confirm(ledger, newer)
    assert not ledger.pending
    assert unclear(ledger, 9.0) == []


def test_an_unexpected_announcement_is_checked(ledger: Ledger) -> None:
    """A late write may have replaced the version that was sent last."""
    send(ledger, A)
    confirm(ledger, A)
    confirm(ledger, A)
    ledger.confirm({"team/unknown": ""})
    assert unclear(ledger, 9.0) == []
    confirm(ledger, skill("a", "Older"))
    confirm(ledger, B)
    assert unclear(ledger, 9.0) == [A.id, B.id]
    ledger.correct([A.id, B.id], [state_of(A, 1)])
    assert unclear(ledger, 9.0) == []
    assert set(ledger.states) == {A.id}


def test_revisions_never_decrease(ledger: Ledger) -> None:
    """They exceed all stored and deleted revisions, whatever the clock says."""
    first = ledger.send([A], [], queue=QUEUE, milliseconds=1_000, now=0.0)
    second = send(ledger, A)
    assert (first, second) == (1_000, 1_001)
    other = Ledger("other")
    other.load([state_of(B, 5_000), state_of(C, 4_000)])
    third = send(other, A)
    last = Ledger("last")
    last.load([state_of(B, 5_000)], deleted=9_000)
    assert (third, send(last, A)) == (5_001, 9_001)


def test_a_failed_item_is_no_longer_pending(ledger: Ledger) -> None:
    """Its stored state is read again, and it does not count as written."""
    send(ledger, A, B, removed=[C.id])
    assert ledger.fail({A.id: A.metadata_hash(), B.id: "another", C.id: ""}) == set()
    assert set(ledger.pending) == {B.id}
    assert unclear(ledger, 0.0) == [A.id, C.id]
    assert ledger.counts == {"added": 1, "removed": 0}
    assert ledger.failed[C.id] == ""


def test_an_item_that_no_longer_fails_may_be_sent_again(ledger: Ledger) -> None:
    """A failed item is returned once, when it no longer fails or fails in another version."""
    assert not ledger.fail({A.id: "1", B.id: "1"})
    assert not ledger.fail({A.id: "1", B.id: "1", C.id: "1"})
    assert ledger.fail({A.id: "1", C.id: "1"})
    assert not ledger.fail({A.id: "1", C.id: "1"})
    assert ledger.fail({A.id: "2", C.id: "1"})


@pytest.mark.usefixtures("few")
def test_items_are_sent_in_batches(ledger: Ledger) -> None:
    """The next batch is due when half of the window is free or the remaining items fit into it."""
    items = [skill(f"s{number}") for number in range(15)]
    ledger.queue(items)
    first, _ = ledger.next_batch(10)
    send(ledger, *first)
    assert len(first) == 10
    confirm(ledger, *first[:4])
    assert ledger.next_batch(10) == ([], [])
    confirm(ledger, first[4])
    assert ledger.next_batch(10) == (items[10:], [])
    ledger.queue(items[5:14])
    assert ledger.next_batch(20) == (items[5:14], [])


def test_a_batch_is_returned_again_until_it_is_sent(ledger: Ledger) -> None:
    """A batch that could not be sent is returned again with its removals."""
    ledger.load([state_of(C, 1)])
    ledger.queue([A, B], [C.id])
    assert ledger.next_saves(9) == ledger.next_saves(9) == ([A, B], [C.id])
    assert ledger.outstanding == 3
    send(ledger, A, removed=[C.id])
    assert ledger.next_saves(9) == ([B], [])


@pytest.mark.usefixtures("few")
def test_a_change_of_up_to_a_maximum_counts_as_saves(ledger: Ledger) -> None:
    """A removal counts as well."""
    ledger.queue([A, B], [C.id])
    assert not ledger.has_backlog
    ledger.queue([A, B, skill("d")], [C.id])
    assert ledger.has_backlog


@pytest.mark.usefixtures("few")
def test_a_save_does_not_wait_for_other_items(ledger: Ledger) -> None:
    """It has its own window, even if the item was already waiting in a build."""
    items = [skill(f"s{number}") for number in range(30)]
    ledger.queue(items)
    send(ledger, *ledger.next_batch(10)[0])
    newer = skill("s29", "It was saved.")
    ledger.queue([newer], compared=[newer.id, A.id])
    assert ledger.next_batch(10) == ([], [])
    assert ledger.next_saves(10) == ([newer], [])
    ledger.queue([], [A.id], compared=[A.id])
    assert ledger.next_saves(10) == ([newer], [A.id])
    assert newer not in ledger.next_batch(40).items
    ledger.queue([], compared=[newer.id, A.id])  # the save was undone
    assert ledger.next_saves(10) == ([], [])
    assert ledger.outstanding == 10 + 19
    ledger.queue(items[20:])
    assert ledger.outstanding == 10 + 10


def test_a_large_removal_does_not_wait_for_a_large_build() -> None:
    """Otherwise removed items would be found for hours, until all earlier items are embedded."""
    ledger = Ledger("c")
    many = [skill(f"s{number}") for number in range(3 * MAX_SAVED)]
    gone = [f"old{number}" for number in range(MAX_SAVED + 1)]
    ledger.queue(many, compared=[one.id for one in many])
    sent, _ = ledger.next_batch(2 * MAX_SAVED)
    send(ledger, *sent)
    ledger.queue([], gone, compared=gone)
    ledger.queue([A], [C.id], compared=[A.id, C.id])
    assert ledger.next_saves(2 * MAX_SAVED) == ([A], [C.id, *gone[: MAX_SAVED - 2]])
    assert ledger.next_batch(2 * MAX_SAVED) == ([], [])


def test_many_saves_are_sent_in_batches(ledger: Ledger) -> None:
    """The number of pending items is bounded."""
    many = [skill(f"s{number}") for number in range(2 * MAX_SAVED)]
    for start in range(0, len(many), MAX_SAVED // 2):
        some = many[start : start + MAX_SAVED // 2]
        ledger.queue(some, compared=[one.id for one in some])
    send(ledger, *ledger.next_saves(0).items)
    assert [*ledger.pending] == [one.id for one in many[:MAX_SAVED]]
    assert ledger.next_saves(0) == ([], [])


def test_progress_counts_changes(ledger: Ledger) -> None:
    """``building`` instead counts the stored items and the final number of items."""
    ledger.load([state_of(A, 1), state_of(C, 1)])
    ledger.queue([skill("a", "Newer"), B, skill("d")])
    assert ledger.progress() == (0, 3)
    assert (ledger.building().done, ledger.building().total) == (2, 4)
    assert ledger.has_items
    send(ledger, *ledger.next_saves(9)[0], removed=[C.id])
    assert ledger.progress() == (0, 4)
    assert (ledger.building().done, ledger.building().total) == (0, 3)
    assert ledger.per_source.total() == 1  # the older version of `a`
    assert not ledger.has_items
    confirm(ledger, B)
    assert ledger.per_source.total() == 2
    assert ledger.progress() == (1, 4)
    assert (ledger.building().done, ledger.building().total) == (1, 3)
    assert ledger.has_items


@given(
    stored=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 3)),
    known=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 3)),
    size=st.integers(1, 9),
)
def test_comparing_all_slices_equals_reading_everything(
    stored: dict[str, int], known: dict[str, int], size: int
) -> None:
    """Each item that differs is named once, and the ledger then equals the collection."""

    def states(hashes: dict[str, int]) -> list[State]:
        found = [
            State(item=item, source="s", content_hash="", metadata_hash=str(one), revision=one)
            for item, one in hashes.items()
        ]
        return sorted(found, key=lambda state: item_key(state.item))

    ledger, start = Ledger("c"), 0
    differing: list[str] = []
    ledger.load(states(known))
    assert ledger.per_source["s"] == len(known)
    all_of_them = states(stored)
    while start < 1 << 96:
        page = [one for one in all_of_them if item_key(one.item) >= start][:size]
        end = item_key(page[-1].item) + 1 if len(page) == size else 1 << 96
        differing += ledger.compare(page, start, end)
        start = end
    assert {item: int(one.metadata_hash) for item, one in ledger.states.items()} == stored
    assert sorted(differing) == sorted(
        item for item in stored.keys() | known.keys() if stored.get(item) != known.get(item)
    )
    assert ledger.per_source["s"] == len(stored)
    assert ledger.newest == max([0, *stored.values(), *known.values()])


def test_a_slice_covers_exactly_its_range_of_keys(ledger: Ledger) -> None:
    """A missing item is noticed only in the slice that contains its key."""
    key = item_key(A.id)
    ledger.load([state_of(A, 1)])
    assert ledger.compare([], 0, key) == ledger.compare([], key + 1, 1 << 96) == set()
    assert ledger.compare([], key, key + 1) == {A.id}


def test_a_slice_leaves_pending_items_unchanged() -> None:
    """A pending item that is stored is confirmed, because its announcement was lost."""
    ledger, [a, b, c] = Ledger("c"), map(skill, "abc")
    send(ledger, c)
    confirm(ledger, c)
    revision = send(ledger, a, b, removed=[c.id])
    stored = [state_of(skill("a", "Old."), 0), state_of(b, revision), state_of(c, 1)]
    page = sorted(stored, key=lambda state: item_key(state.item))
    assert ledger.compare(page, 0, 1 << 96) == set()
    assert set(ledger.pending) == {a.id, c.id}
    assert set(ledger.states) == {a.id, b.id}


@given(
    stored=st.sets(st.sampled_from("abcde")),
    steps=st.lists(
        st.tuples(
            st.sampled_from(("all", "some", "send", "stored", "gone")),
            st.sets(st.sampled_from("abcde"), max_size=3),
            st.sets(st.sampled_from("abcde"), max_size=3),
        ),
        max_size=12,
    ),
)
def test_the_total_of_a_build_is_updated_incrementally(
    stored: set[str], steps: list[tuple[str, set[str], set[str]]]
) -> None:
    """It always equals a full count of the stored and waiting items."""
    ledger = Ledger("c")
    ledger.load([state_of(skill(name), 1) for name in stored])
    waiting: dict[str, bool] = {}  # whether it is written
    for how, names, others in steps:
        items = [*map(skill, sorted(names))]
        written = [item.id for item in items]
        gone = [skill(name).id for name in sorted(others - names)]
        if how in ("all", "some"):
            ledger.queue(items, gone, None if how == "all" else [*written, *gone])
            waiting = {} if how == "all" else waiting
            waiting |= dict.fromkeys(written, True) | dict.fromkeys(gone, False)
        elif how == "send":
            for take in (ledger.next_saves, ledger.next_batch):
                batch, removed = take(len(ledger.pending) + len(names))
                send(ledger, *batch, removed=removed)
                for one in (*(item.id for item in batch), *removed):
                    del waiting[one]
        else:
            ledger.correct(written, [state_of(one, 1) for one in items if how == "stored"])
        new = sum(is_written and one not in ledger.states for one, is_written in waiting.items())
        assert ledger.building().total == len(ledger.states) + new
        assert ledger.outstanding == len(ledger.pending) + len(waiting)
