"""The usage store and its recorder: bounded, private, and without delays for searches."""

import gc
import logging
import sqlite3
import stat
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from repertory.errors import StoreError
from repertory.search.answer import Answer, Mode
from repertory.system import background_writer
from repertory.usage import recorder as recording
from repertory.usage.events import MAX_QUERY_LENGTH, MAX_TERMS, Event, LostEvents, Search, Use
from repertory.usage.recorder import UsageRecorder
from repertory.usage.store import DAY_S, UsageStore
from tests.support.usage import answer

NOW = 1_800_000_000.0


def use(item: str, at: float = NOW) -> Use:
    """A use of an item."""
    return Use(at=at, caller="key:ci", item=item)


def items(store: UsageStore) -> list[str]:
    """The items of the stored uses."""
    return [event.item for event in store.read() if isinstance(event, Use)]


@pytest.fixture(autouse=True)
def short_lived_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let writer threads end soon after their last event."""
    monkeypatch.setattr(background_writer, "IDLE_S", 0.01)


@pytest.fixture
def store(tmp_path: Path) -> UsageStore:
    """A store that does not exist yet."""
    return UsageStore(tmp_path / "usage" / "some.sqlite", 90, 1_000)


@settings(max_examples=10)
@given(st.lists(st.integers(0, 30), max_size=6), st.integers(1, 20))
def test_only_the_newest_events_are_kept(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], most: int
) -> None:
    """The limit applies to the file and to the events that are read, for batches of any size."""
    path = tmp_path_factory.mktemp("usage") / "some.sqlite"
    store = UsageStore(path, 90, most, now=lambda: NOW)
    written: list[str] = []
    for size in sizes:
        batch = [str(len(written) + number) for number in range(size)]
        store.append([use(name) for name in batch])
        written += batch
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM events").fetchone()[0] <= most
        connection.close()
    assert items(store) == written[-most:]


def test_old_events_are_deleted(tmp_path: Path) -> None:
    """Writing and reading the store delete them, in whatever order they were added."""
    now = NOW
    store = UsageStore(tmp_path / "some.sqlite", 2, 1_000, now=lambda: now)
    store.append([use("new"), use("old", NOW - 3 * DAY_S), use("younger", NOW - DAY_S)])
    assert items(store) == ["younger", "new"]
    now = NOW + 1.5 * DAY_S
    assert items(store) == ["new"]
    now = NOW + 3 * DAY_S
    assert store.read() == []
    assert b"younger" not in (tmp_path / "some.sqlite").read_bytes()


def test_the_usage_store_is_private_and_created_by_writing(store: UsageStore) -> None:
    """Only the owner can read the folder and the file; reading does not create them."""
    assert store.read() == []
    assert not store.path.exists()
    store.append([use("a")])
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def test_the_error_for_a_damaged_store_says_what_to_do(store: UsageStore) -> None:
    """The message names the file and advises to remove it."""
    store.append([use("a")])
    store.path.write_bytes(b"no database" * 1_000)
    with pytest.raises(StoreError, match=r"some\.sqlite cannot be used .* remove it"):
        store.read()


@pytest.mark.parametrize(
    "content",
    [b'{"type":"rated","at":1.0}', b'{"type":"use","at":1.0}', b"{", b"\xff", b"", "text", 5, None],
)
def test_an_unreadable_event_hides_no_other(store: UsageStore, content: object) -> None:
    """An event may be damaged or come from a newer release."""
    store.append([use("one")])
    with sqlite3.connect(store.path) as connection:
        at = connection.execute("SELECT at FROM events").fetchone()[0]
        connection.execute("INSERT INTO events (at, content) VALUES (?, ?)", [at, content])
    connection.close()
    store.append([use("other")])
    assert items(store) == ["one", "other"]


def test_all_processes_together_begin_one_digest_per_interval(tmp_path: Path) -> None:
    """Another one may begin if the digest could not be sent or the clock was set back."""
    now = NOW
    one, other = (UsageStore(tmp_path / "some.sqlite", 90, 10, now=lambda: now) for _ in range(2))
    assert [one.begin_digest(DAY_S), other.begin_digest(DAY_S)] == [True, False]
    now += DAY_S - 1
    assert not other.begin_digest(DAY_S)
    now += 1
    assert other.begin_digest(DAY_S)
    other.undo_digest()
    assert one.begin_digest(DAY_S)
    now -= 10 * DAY_S
    assert one.begin_digest(DAY_S)


def test_hashed_queries_leave_no_text(store: UsageStore) -> None:
    """Equal queries and words have equal digests within a store, but not in another store."""
    usage = UsageRecorder(store)
    for query in ("rotate swordfish keys", "Rotate  swordfish keys", "keys of a swordfish"):
        usage.searched("key:ci", answer(query), 0.01)
    assert usage.flush()
    content = b"".join(file.read_bytes() for file in store.path.parent.iterdir())
    assert b"swordfish" not in content
    found = [one for one in store.read() if isinstance(one, Search)]
    assert [one.query for one in found] == ["", "", ""]
    assert found[0].digest == found[1].digest != found[2].digest
    assert {*found[2].terms} < {*found[0].terms}
    again = UsageRecorder(store)  # after a restart
    again.searched("key:ci", answer("rotate swordfish keys"), 0.01)
    assert again.flush()
    assert store.read()[-1] == replace(found[0], at=store.read()[-1].at)

    other = UsageStore(store.path.with_name("other.sqlite"), 90, 10)
    elsewhere = UsageRecorder(other)
    elsewhere.searched("key:ci", answer("rotate swordfish keys"), 0.01)
    assert elsewhere.flush()
    [event] = other.read()
    assert isinstance(event, Search)
    assert not {*event.terms} & {*found[0].terms}


def test_a_search_is_bounded(store: UsageStore) -> None:
    """Only the beginning of a long task, and the first of many results, are kept."""
    usage = UsageRecorder(store, has_queries=True)
    long = answer("word " * 6_000 + "end", *map(str, range(100)))
    copied = replace(long.hits[0], duplicates=[f"copy-{number}" for number in range(100)])
    long = replace(long, hits=[copied, *long.hits[1:]])
    usage.searched("key:" + "c" * 1_000, long, 0.5)
    assert usage.flush()
    [event] = store.read()
    assert isinstance(event, Search)
    assert len(event.query) <= MAX_QUERY_LENGTH
    assert (len(event.caller), len(event.hits), event.ms) == (300, 20, 500.0)
    assert (len(event.terms), len(event.copies)) == (1, 20)


def test_only_the_first_words_of_a_query_are_recorded(store: UsageStore) -> None:
    """A caller may send any number of different words."""
    usage = UsageRecorder(store)
    usage.searched("key:ci", answer(" ".join(f"word{number}" for number in range(100))), 0.1)
    assert usage.flush()
    [event] = store.read()
    assert isinstance(event, Search)
    assert len(event.terms) == MAX_TERMS


def test_a_search_without_hits_has_the_confidence_of_the_best_item(store: UsageStore) -> None:
    """The report shows how far below the threshold it was."""
    usage = UsageRecorder(store)
    usage.searched("key:ci", replace(answer("mail"), best_below=0.3), 0.1)
    usage.searched("key:ci", replace(answer("mail", "a"), best_below=0.3), 0.1)
    assert usage.flush()
    assert [one.confidence for one in store.read() if isinstance(one, Search)] == [0.3, 0.9]


def test_an_item_that_a_request_reads_twice_is_one_use(store: UsageStore) -> None:
    """The order of the items is kept."""
    usage = UsageRecorder(store)
    usage.used("key:ci", ["b", "a", "b"])
    assert usage.flush()
    assert items(store) == ["b", "a"]


def test_a_query_typed_on_a_page_is_one_search(store: UsageStore) -> None:
    """On a page each letter may start a search; searches of programs are never combined."""
    now = NOW
    usage = UsageRecorder(store, now=lambda: now)
    for query, is_typed in (("no", True), ("notes", True), ("mail", True), ("mail", False)):
        usage.searched("owner", answer(query), 0.0, is_typed=is_typed)
    usage.searched("owner", answer("mail it"), 0.0, is_typed=True)  # the first one of another text
    usage.searched("key:ci", answer("mail it"), 0.0, is_typed=True)
    now += 60
    usage.searched("owner", answer("mails"), 0.0, is_typed=True)
    assert usage.flush()
    found = [one.continues for one in store.read() if isinstance(one, Search)]
    assert found == [False, True, False, False, False, False, False]


def test_a_hanging_disk_does_not_delay_callers(
    store: UsageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bounded number of events waits; the others are dropped, and their number is recorded."""
    monkeypatch.setattr(recording, "MAX_WAITING", 5)
    hanging, entered = threading.Event(), threading.Event()
    append = store.append

    def hang(events: object) -> None:
        entered.set()
        assert hanging.wait(60)
        append(events)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(store, "append", hang)
    usage = UsageRecorder(store)
    usage.used("key:ci", ["first"])
    assert entered.wait(60)
    usage.used("key:ci", [str(number) for number in range(20)])
    hanging.set()
    assert usage.flush(60)
    usage.used("key:ci", ["last"])
    assert usage.flush(60)
    events = store.read()
    assert items(store) == ["first", "0", "1", "2", "3", "4", "last"]
    assert sum(one.count for one in events if isinstance(one, LostEvents)) == 15


def test_events_that_cannot_be_written_are_counted(
    store: UsageStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The number of lost events is recorded as soon as the store can be written again."""
    store.path.parent.write_text("a file where the folder should be")
    usage = UsageRecorder(store)
    for _ in range(3):
        usage.used("key:ci", ["a", "b"])
        assert not usage.flush()
    with caplog.at_level(logging.WARNING):
        assert len([one for one in caplog.records if one.msg == "usage_not_written"]) == 1
    store.path.parent.unlink()
    usage.used("key:ci", ["c"])
    assert usage.flush()
    assert items(store) == ["c"]
    assert [one.count for one in store.read() if isinstance(one, LostEvents)] == [6]


def test_the_writer_thread_ends_when_idle(store: UsageStore) -> None:
    """It starts again for the next event, so closed projects keep no threads and no memory."""
    usage = UsageRecorder(store)
    for name in ("a", "b"):
        usage.used("key:ci", [name])
        for thread in threading.enumerate():
            if thread.name == "usage":
                thread.join(60)
        assert not any(one.name == "usage" for one in threading.enumerate())
    assert items(store) == ["a", "b"]
    closed = weakref.ref(usage)
    del usage
    gc.collect()
    assert closed() is None


def test_nothing_is_recorded_without_a_store() -> None:
    """With the setting `off`, recording has no effect."""
    usage = UsageRecorder(None)
    usage.searched("key:ci", Answer(query="a", hits=[], threshold=0.3, mode=Mode.HYBRID), 0.1)
    usage.used("key:ci", ["a"])
    assert usage.flush()


def test_events_within_a_pause_are_written_together(
    store: UsageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush, or half of ``MAX_WAITING`` events, ends the pause early."""
    monkeypatch.setattr(recording, "PAUSE_S", 600.0)
    monkeypatch.setattr(background_writer, "IDLE_S", 600.0)
    monkeypatch.setattr(recording, "MAX_WAITING", 40)
    written: list[int] = []
    has_written = threading.Event()
    append = store.append

    def counted(events: Sequence[Event]) -> None:
        written.append(len(events))
        append(events)
        has_written.set()

    monkeypatch.setattr(store, "append", counted)
    usage = UsageRecorder(store)
    usage.used("key:ci", ["first"])
    assert usage.flush()
    has_written.clear()
    usage.used("key:ci", [*map(str, range(20))])
    assert not has_written.wait(0.2)
    assert usage.flush()
    assert written == [1, 20]
    has_written.clear()
    usage.used("key:ci", [*map(str, range(21))])
    assert has_written.wait(60)
    assert written == [1, 20, 21]
