"""The usage store and its recorder: bounded, private, and never in the way of a search."""

import logging
import sqlite3
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repertory import background_writer
from repertory.errors import StoreError
from repertory.search.answer import Answer, Mode
from repertory.usage import recorder as recording
from repertory.usage.events import MAX_QUERY_LENGTH, Event, LostEvents, Search, Use
from repertory.usage.recorder import UsageRecorder
from repertory.usage.store import DAY_S, UsageStore
from tests.support.usage import answer

NOW = 1_800_000_000.0


def use(item: str, at: float = NOW) -> Use:
    """A use of an item."""
    return Use(at=at, caller="key:ci", item=item)


def items(store: UsageStore) -> list[str]:
    """The items of the uses that are stored."""
    return [event.item for event in store.read() if isinstance(event, Use)]


@pytest.fixture(autouse=True)
def short_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that end soon after their last event."""
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
    """However they come in, as many as the setting says, in the file as in what is read."""
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
    """When something is written or read, whatever the order in which they came."""
    now = NOW
    store = UsageStore(tmp_path / "some.sqlite", 2, 1_000, now=lambda: now)
    store.append([use("new"), use("old", NOW - 3 * DAY_S), use("younger", NOW - DAY_S)])
    assert items(store) == ["younger", "new"]
    now = NOW + 1.5 * DAY_S
    assert items(store) == ["new"]
    now = NOW + 3 * DAY_S
    assert store.read() == []
    assert b"younger" not in (tmp_path / "some.sqlite").read_bytes()


def test_only_its_owner_reads_it(store: UsageStore) -> None:
    """The folder and the file; without the file nothing was recorded, and none is made."""
    assert store.read() == []
    assert not store.path.exists()
    store.append([use("a")])
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def test_a_damaged_store_says_what_to_do(store: UsageStore) -> None:
    """It is named, and what is lost without it."""
    store.append([use("a")])
    store.path.write_bytes(b"no database" * 1_000)
    with pytest.raises(StoreError, match=r"some\.sqlite cannot be used .* remove it"):
        store.read()


@pytest.mark.parametrize(
    "content",
    [b'{"type":"rated","at":1.0}', b'{"type":"use","at":1.0}', b"{", b"\xff", b"", "text", 5, None],
)
def test_an_event_that_cannot_be_read_hides_no_other(store: UsageStore, content: object) -> None:
    """It may be damaged, or of a newer release."""
    store.append([use("one")])
    with sqlite3.connect(store.path) as connection:
        at = connection.execute("SELECT at FROM events").fetchone()[0]
        connection.execute("INSERT INTO events (at, content) VALUES (?, ?)", [at, content])
    connection.close()
    store.append([use("other")])
    assert items(store) == ["one", "other"]


def test_one_digest_for_all_processes_in_an_interval(tmp_path: Path) -> None:
    """Unless it could not be sent, or the clock went back."""
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
    """Equal queries and words have equal digests in one store, and others in another."""
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

    other = UsageStore(store.path.with_name("other.sqlite"), 90, 10)
    elsewhere = UsageRecorder(other)
    elsewhere.searched("key:ci", answer("rotate swordfish keys"), 0.01)
    assert elsewhere.flush()
    [event] = other.read()
    assert isinstance(event, Search)
    assert not {*event.terms} & {*found[0].terms}


def test_a_search_is_bounded(store: UsageStore) -> None:
    """Of a long task with many results, the beginning is kept."""
    usage = UsageRecorder(store, has_queries=True)
    usage.searched("key:" + "c" * 1_000, answer("word " * 6_000, *map(str, range(100))), 0.5)
    assert usage.flush()
    [event] = store.read()
    assert isinstance(event, Search)
    assert len(event.query) <= MAX_QUERY_LENGTH
    assert (len(event.caller), len(event.hits), event.ms) == (300, 20, 500.0)


def test_a_query_being_typed_is_one_search(store: UsageStore) -> None:
    """On a page, where each letter may search; programs mean each search."""
    now = NOW
    usage = UsageRecorder(store, now=lambda: now)
    for query, is_typed in (("no", True), ("notes", True), ("mail", True), ("mail", False)):
        usage.searched("owner", answer(query), 0.0, is_typed=is_typed)
    usage.searched("key:ci", answer("mail it"), 0.0, is_typed=True)
    now += 60
    usage.searched("owner", answer("mails"), 0.0, is_typed=True)
    assert usage.flush()
    found = [one.continues for one in store.read() if isinstance(one, Search)]
    assert found == [False, True, False, False, False, False]


def test_a_disk_that_hangs_delays_nothing(
    store: UsageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bounded number waits; the others are counted, and the count is recorded."""
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


def test_what_cannot_be_written_is_counted(
    store: UsageStore, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning says so once; later events are recorded again."""
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


def test_the_thread_ends_when_it_has_nothing_to_do(store: UsageStore) -> None:
    """And begins again, so that closed projects keep no threads."""
    usage = UsageRecorder(store)
    for name in ("a", "b"):
        usage.used("key:ci", [name])
        for thread in threading.enumerate():
            if thread.name == "usage":
                thread.join(60)
        assert not any(one.name == "usage" for one in threading.enumerate())
    assert items(store) == ["a", "b"]


def test_nothing_is_recorded_without_a_store() -> None:
    """The setting `off`: no thread, no file."""
    usage = UsageRecorder(None)
    usage.searched("key:ci", Answer(query="a", hits=[], threshold=0.3, mode=Mode.HYBRID), 0.1)
    usage.used("key:ci", ["a"])
    assert usage.flush()


def test_events_of_a_moment_are_written_together(
    store: UsageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush does not wait for the rest of the pause, and many waiting events end it."""
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
