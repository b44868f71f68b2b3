"""The store of reviews: the approved and the current version of each item, and its history.

One SQLite file for each catalogue. It cannot be rebuilt, because it holds people's decisions.
"""

import contextlib
import sqlite3
import time
import zlib
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path

import msgspec

from repertory.catalogue.item import Item
from repertory.errors import StoreError
from repertory.review.difference import difference
from repertory.review.judgement import Judgement, State
from repertory.review.suspicions import Finding
from repertory.review.versions import VERSION_LENGTH, approval_digest, is_bound
from repertory.review.wire import Event, Review, Reviews
from repertory.system.database import Database

MAX_EVENTS = 50  # per item
MAX_DIFF = 20_000  # characters per event
MAX_GONE = 10_000  # events per source about removed items that were never approved
MAX_DIFFS = 50_000_000  # characters of all diffs of a source; the oldest are deleted first
MAX_LISTED = 500

_SCHEMA = """
CREATE TABLE IF NOT EXISTS sources (name TEXT PRIMARY KEY, since REAL);
CREATE TABLE IF NOT EXISTS items (
  source TEXT, id TEXT, hash TEXT, state TEXT, findings BLOB, at REAL,
  current BLOB, approved BLOB,
  PRIMARY KEY (source, id)
);
CREATE TABLE IF NOT EXISTS events (
  number INTEGER PRIMARY KEY, source TEXT, id TEXT, at REAL, what TEXT, who TEXT, diff TEXT
);
CREATE INDEX IF NOT EXISTS events_of ON events (id, source);
"""
_APPROVED = (  # the approved versions of a source's items; null for an item without one
    f"CASE state WHEN '{State.APPROVED}' THEN current ELSE approved END FROM items WHERE source = ?"
)
_WAITING = (  # the items that wait for a person, those in quarantine first
    f"FROM items WHERE state != '{State.APPROVED}' "
    f"ORDER BY state != '{State.QUARANTINED}', id, source LIMIT ?"
)
_NO_LIMIT = -1
_STEP = 1_000  # events between checks of these limits, because a check reads all of a source
_OF_GONE = """
DELETE FROM events WHERE number IN (
  SELECT number FROM events AS one WHERE source = ? AND NOT EXISTS (
    SELECT 1 FROM items WHERE items.source = one.source AND items.id = one.id
  ) ORDER BY number DESC LIMIT -1 OFFSET ?
)
"""
_OLD_DIFFS = """
UPDATE events SET diff = '' WHERE diff != '' AND number IN (
  SELECT number FROM (
    SELECT number, sum(length(diff)) OVER (ORDER BY number DESC) AS size
    FROM events WHERE source = ?
  ) WHERE size > ?
)
"""


class KnownItem(msgspec.Struct, frozen=True):
    """The stored digest of an item's content, and the judgement about it."""

    hash: str
    judgement: Judgement


class ReviewStore:
    """The approvals of a catalogue. Threads and processes may share the file.

    Every method raises ``StoreError`` if the file cannot be used.

    Args:
        path: The file. The first write creates it; a missing file counts as empty.
        now: The time of day, in Unix seconds.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path = path
        self._database = Database(
            path,
            _SCHEMA,
            "The store of approvals",
            "what the sources offer then counts as approved",
        )
        self._now = now

    def version(self) -> int:
        """A number that changes with each decision of a person."""
        with self._database.reading() as connection:
            return int(connection.execute("PRAGMA user_version").fetchone()[0])

    def is_known(self, source: str) -> bool:
        """Whether a source was recorded before."""
        query = "SELECT 1 FROM sources WHERE name = ?"
        with self._database.reading() as connection:
            return connection.execute(query, [source]).fetchone() is not None

    def known(self, source: str) -> dict[str, KnownItem]:
        """The stored state of a source's items, by id."""
        query = "SELECT id, hash, state, findings FROM items WHERE source = ?"
        with self._database.reading() as connection:
            return {
                item: KnownItem(hash_, Judgement(State(state), _findings(findings)))
                for item, hash_, state, findings in connection.execute(query, [source])
            }

    def approved(self, source: str, item: str) -> Item | None:
        """The approved version of an item; None if there is no such version."""
        query = f"SELECT {_APPROVED} AND id = ?"
        with self._database.reading() as connection:
            row = connection.execute(query, [source, item]).fetchone()
            return _unpacked(row[0]) if row and row[0] else None

    def inherit(self, source: str, places: Container[str]) -> bool:
        """Copy the approvals of a source from another directory, if it is unknown here.

        A person trusts a server in the home configuration only once. Without these approvals, its
        first scan in another directory would approve whatever it offers then.

        Args:
            source: The source.
            places: The paths of its items, because another source may have the same name there.

        Returns:
            Whether approvals were copied. They come from the most recently changed directory that
            has some.
        """
        if self.is_known(source):
            return False
        with self._database.translated():
            others = {one: one.stat().st_mtime for one in self.path.parent.glob("*.sqlite")}
        for path in sorted(others, key=others.__getitem__, reverse=True):
            with contextlib.suppress(StoreError):
                found = ReviewStore(path)._approved_of(source)
                if inherited := [one for one in found if one[0].path in places]:
                    self.record(source, inherited)
                    return True
        return False

    def _approved_of(self, source: str) -> list[tuple[Item, str, Judgement]]:
        """The approved versions of a source's items, in the form that ``record`` takes."""
        query = f"SELECT hash, state, {_APPROVED}"
        found = []
        with self._database.reading() as connection:
            for hash_, state, content in connection.execute(query, [source]):
                if content is not None:
                    item = _unpacked(content)
                    digest = hash_ if state == State.APPROVED else approval_digest(item)
                    found.append((item, digest, Judgement(State.APPROVED)))
        return found

    def record(
        self,
        source: str,
        judged: Iterable[tuple[Item, str, Judgement]],
        gone: Iterable[str] = (),
    ) -> dict[str, KnownItem]:
        """Store new and changed items with their digests and judgements.

        The approved version of an item is kept. If the judgement is "approved", the item itself
        becomes that version.

        Args:
            source: The source.
            judged: Each item with its digest and judgement.
            gone: The ids of waiting items that no longer exist. They go back to their approved
                version, or are deleted if they have none.

        Returns:
            The new state of the gone items that have an approved version, by id.
        """
        now = self._now()
        restored = {}
        with self._database.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO sources VALUES (?, ?)", [source, now])
            before = _last(connection)
            for item, digest, judgement in judged:
                self._record(connection, source, item, digest, judgement, now)
            for item_id in gone:
                if one := self._forget(connection, source, item_id, now):
                    restored[item_id] = one
            # Bound the history: a server may add or change tools each time it is asked.
            if _last(connection) // _STEP > before // _STEP:
                connection.execute(_OF_GONE, [source, MAX_GONE])
                connection.execute(_OLD_DIFFS, [source, MAX_DIFFS])
        return restored

    def _record(
        self,
        connection: sqlite3.Connection,
        source: str,
        item: Item,
        digest: str,
        judgement: Judgement,
        now: float,
    ) -> None:
        query = f"SELECT hash, current, {_APPROVED} AND id = ?"
        before = connection.execute(query, [source, item.id]).fetchone()
        approved, diff, what = None, "", "appeared"
        if before:
            hash_, current, approved = before
            what = "reviewed" if hash_ == digest else "changed"
            diff = "\n".join(difference(item, _unpacked(current)))[:MAX_DIFF]
        is_approved = judgement.state is State.APPROVED
        connection.execute(
            "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                source,
                item.id,
                digest,
                judgement.state.value,
                msgspec.json.encode(judgement.findings),
                now,
                _packed(item),
                None if is_approved else approved,
            ],
        )
        if judgement.state is State.QUARANTINED:
            what += ", in quarantine"
        _note(connection, source, item.id, now, what, "", diff)

    def _forget(
        self, connection: sqlite3.Connection, source: str, item: str, now: float
    ) -> KnownItem | None:
        """Go back to the approved version of an item; None if it has no such version."""
        query = "SELECT approved FROM items WHERE source = ? AND id = ?"
        approved = (connection.execute(query, [source, item]).fetchone() or [None])[0]
        connection.execute("DELETE FROM items WHERE source = ? AND id = ?", [source, item])
        restored = None
        if approved:
            digest = approval_digest(_unpacked(approved))
            restored = KnownItem(digest, Judgement(State.APPROVED))
            connection.execute(
                "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [source, item, digest, State.APPROVED.value, b"[]", now, approved, None],
            )
        _note(connection, source, item, now, "gone", "", "")
        return restored

    def waiting(self) -> list[Review]:
        """The items that wait for a person, those in quarantine first; at most ``MAX_LISTED``."""
        query = f"SELECT source, id, hash, state, findings, at, current, approved {_WAITING}"
        with self._database.reading() as connection:
            return [
                Review(
                    item=item,
                    source=source,
                    state=State(state),
                    version=hash_[:VERSION_LENGTH],
                    at=at,
                    findings=_findings(findings),
                    diff=difference(_unpacked(current), _unpacked(approved) if approved else None),
                )
                for source, item, hash_, state, findings, at, current, approved in (
                    connection.execute(query, [MAX_LISTED])
                )
            ]

    def listing(self) -> Reviews:
        """The items that ``waiting`` lists, and how many wait."""
        return Reviews(reviews=self.waiting(), waiting=self.count())

    def states(self, items: Sequence[str]) -> dict[tuple[str, str], State]:
        """The states of the given items that wait for a person, by source and id."""
        query = (
            "SELECT source, id, state FROM items "
            "WHERE state != ? AND id IN (SELECT value FROM json_each(?))"
        )
        wanted = msgspec.json.encode(items).decode("utf-8", "replace")
        with self._database.reading() as connection:
            return {
                (source, item): State(state)
                for source, item, state in connection.execute(query, [State.APPROVED.value, wanted])
            }

    def quarantined(self) -> set[tuple[str, str]]:
        """The source and the id of each item in quarantine."""
        query = "SELECT source, id FROM items WHERE state = ?"
        with self._database.reading() as connection:
            return {*connection.execute(query, [State.QUARANTINED.value])}

    def count(self) -> int:
        """How many items wait for a person."""
        query = "SELECT count(*) FROM items WHERE state != ?"
        with self._database.reading() as connection:
            return int(connection.execute(query, [State.APPROVED.value]).fetchone()[0])

    def approve(self, items: Sequence[str] | None, who: str) -> list[str]:
        """Approve items as they are now.

        Args:
            items: Their ids, or ``ID@VERSION`` to approve only this version. None approves the
                items that ``waiting`` lists, because a person has seen only these. An id that
                itself ends like a version must be followed by one.
            who: Who approves them.

        Returns:
            The ids of the waiting items that are now approved.
        """
        wanted = None if items is None else set(items)
        now, done = self._now(), []
        with self._database.writing() as connection:
            query = f"SELECT source, id, hash {_WAITING}"
            limit = MAX_LISTED if wanted is None else _NO_LIMIT
            for source, item, hash_ in connection.execute(query, [limit]).fetchall():
                names = {f"{item}@{hash_[:VERSION_LENGTH]}"}
                if not is_bound(item):  # else it could mean another item with a version
                    names.add(item)
                if wanted is not None and not names & wanted:
                    continue
                connection.execute(
                    "UPDATE items SET state = ?, findings = ?, approved = NULL "
                    "WHERE source = ? AND id = ?",
                    [State.APPROVED.value, b"[]", source, item],
                )
                _note(connection, source, item, now, "approved", who, "")
                done.append(item)
            if done:
                version = connection.execute("PRAGMA user_version").fetchone()[0]
                connection.execute(f"PRAGMA user_version = {(version + 1) % 2**31}")
        return list(dict.fromkeys(done))

    def history(self, item: str) -> list[Event]:
        """The events of an item, latest last, at most ``MAX_EVENTS`` for each source."""
        query = "SELECT source, at, what, who, diff FROM events WHERE id = ? ORDER BY number"
        with self._database.reading() as connection:
            return [
                Event(source=source, at=at, what=what, who=who, diff=diff.splitlines())
                for source, at, what, who, diff in connection.execute(query, [item])
            ]


def _last(connection: sqlite3.Connection) -> int:
    """The number of the latest event; 0 without events."""
    return int(connection.execute("SELECT coalesce(max(number), 0) FROM events").fetchone()[0])


def _note(
    connection: sqlite3.Connection,
    source: str,
    item: str,
    at: float,
    what: str,
    who: str,
    diff: str,
) -> None:
    """Add an event, and delete the oldest ones beyond the limit."""
    connection.execute(
        "INSERT INTO events (source, id, at, what, who, diff) VALUES (?, ?, ?, ?, ?, ?)",
        [source, item, at, what, who, diff],
    )
    # Keep the first event, which says when the item appeared.
    of = "FROM events WHERE id = ? AND source = ?"
    connection.execute(
        f"DELETE FROM events WHERE number IN (SELECT number {of} ORDER BY number "  # noqa: S608 - constant
        f"LIMIT max((SELECT count(*) {of}) - ?, 0) OFFSET 1)",
        [item, source, item, source, MAX_EVENTS],
    )


def _packed(item: Item) -> bytes:
    return zlib.compress(msgspec.json.encode(item))


def _unpacked(data: bytes) -> Item:
    return msgspec.json.decode(zlib.decompress(data), type=Item)


def _findings(data: bytes) -> list[Finding]:
    return msgspec.json.decode(data, type=list[Finding])
