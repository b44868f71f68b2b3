"""The usage store: the last events of a catalogue in one SQLite file, bounded by age and number.

All processes with the same data directory write to the same file. It cannot be rebuilt, but only
the reports depend on it.
"""

import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from repertory.system.database import Database
from repertory.system.files import is_there
from repertory.usage.events import Event

DAY_S = 86_400.0
SECRET_LENGTH = 32  # bytes

# Queries are private, so deleted rows are overwritten.
_SCHEMA = """
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY, at REAL, content BLOB);
CREATE INDEX IF NOT EXISTS events_at ON events (at);
CREATE TABLE IF NOT EXISTS digests (at REAL);
CREATE TABLE IF NOT EXISTS secrets (number INTEGER PRIMARY KEY, secret BLOB);
"""

_decoder = msgspec.json.Decoder(Event)


class UsageStore:
    """The events of one catalogue. Threads and processes may share the file.

    Every method raises ``StoreError`` if the file cannot be used.

    Args:
        path: The file. The first write creates it; a missing file counts as empty.
        max_age: Days after which an event is deleted.
        max_events: The maximum number of events.
        now: The time of day, in Unix seconds.
    """

    def __init__(
        self,
        path: Path,
        max_age: float,
        max_events: int,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._database = Database(
            path,
            _SCHEMA,
            "The usage store",
            "only the reports of `repertory insights` are lost",
        )
        self._max_age_s = max_age * DAY_S
        self._max_events = max_events
        self._now = now

    def append(self, events: Sequence[Event]) -> None:
        """Add events, and delete the oldest ones beyond the limits."""
        rows = [(event.at, msgspec.json.encode(event)) for event in events]
        with self._database.writing() as connection:
            connection.executemany("INSERT INTO events (at, content) VALUES (?, ?)", rows)
            self._prune(connection)

    def read(self) -> list[Event]:
        """Delete the events beyond the limits and return the others, oldest first.

        Events that are damaged, or that only another release can read, are left out.
        """
        with self._database.translated():
            if not is_there(self.path) and not self.path.parent.is_file():
                return []
        with self._database.writing() as connection:
            self._prune(connection)
            rows = connection.execute("SELECT content FROM events ORDER BY at, number").fetchall()
        return [event for (content,) in rows if (event := _decoded(content)) is not None]

    def secret(self) -> bytes:
        """The key of the digests, which the first call creates."""
        with self._database.writing() as connection:
            made = secrets.token_bytes(SECRET_LENGTH)
            connection.execute("INSERT OR IGNORE INTO secrets VALUES (1, ?)", [made])
            return bytes(connection.execute("SELECT secret FROM secrets").fetchone()[0])

    def begin_digest(self, interval: float) -> bool:
        """Begin a digest; False if one was begun within the interval, in seconds."""
        with self._database.writing() as connection:
            now = self._now()
            last = connection.execute("SELECT max(at) FROM digests").fetchone()[0]
            if last is not None and last <= now < last + interval:
                return False
            connection.execute("DELETE FROM digests")
            connection.execute("INSERT INTO digests VALUES (?)", [now])
            return True

    def undo_digest(self) -> None:
        """Forget the begun digest, so that it is sent later."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM digests")

    def _prune(self, connection: sqlite3.Connection) -> None:
        oldest = self._now() - self._max_age_s
        connection.execute("DELETE FROM events WHERE at < ?", [oldest])
        # By number, because counting would read all events at each write.
        query = "DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - ?"
        connection.execute(query, [self._max_events])


def _decoded(content: object) -> Event | None:
    """An event; None if this release cannot read it."""
    try:
        return _decoder.decode(content)  # type: ignore[arg-type]  # a cell may hold anything
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return None
