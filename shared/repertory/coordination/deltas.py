"""Deltas: which items of a collection were just written or removed.

A delta carries ids and hashes; the content is in the collection. Deltas may therefore be repeated
or reordered, and a reader that missed some compares its hashes with those of the collection.
"""

import re
import threading
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import msgspec
from typing_extensions import override

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

REMOVED = ""  # in place of the hash of a removed item
MAX_ANNOUNCEMENTS = 10_000  # kept per stream; compaction trims it long before


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """The changes since a position.

    Attributes:
        position: The position to continue reading from.
        hashes: The metadata hashes of the items, by id; ``REMOVED`` for removed ones.
        gap: Whether announcements may be missing because they were trimmed or lost.
    """

    position: str
    hashes: dict[str, str] = {}
    gap: bool = False


class Deltas(Protocol):
    """One stream per collection. Every method raises ``StoreError`` when it is unavailable.

    A position is opaque. Reading from the empty position yields a gap, and so does a position of
    another stream, such as an earlier stream of the collection that was lost.

    A stream keeps a limited number of announcements, about ``MAX_ANNOUNCEMENTS``.
    """

    def announce(self, collection: str, hashes: Mapping[str, str]) -> None:
        """Announce items after they were written or removed; an empty announcement does nothing."""
        ...

    def since(self, collection: str, position: str, wait: float = 0.0) -> Delta:
        """Everything announced after a position, in one delta.

        A gap carries no hashes. Its position is the end of the stream: continue from there, and
        compare your hashes with those of the collection.

        Args:
            collection: The collection; an unused one has an empty stream, which is no gap.
            position: A position from an earlier delta or from ``position``, or empty.
            wait: Seconds to wait for an announcement if there is no new one.
        """
        ...

    def position(self, collection: str) -> str:
        """The end of the stream. Ask for it before reading the collection itself."""
        ...

    def trim(self, collection: str, position: str) -> None:
        """Delete the announcements up to a position; a position that yields a gap is ignored.

        Readers before the position will see a gap; readers at or past it will not.
        """
        ...

    def length(self, collection: str) -> int:
        """The number of announcements that are kept."""
        ...

    def drop(self, collection: str) -> None:
        """Delete the stream of a collection, if it has one."""
        ...


class _Stream:
    """One stream: its announcements are numbered from 1."""

    def __init__(self, limit: int) -> None:
        self.life = uuid.uuid4().hex
        self.last = 0
        self.kept: deque[Mapping[str, str]] = deque(maxlen=limit)

    @property
    def end(self) -> str:
        """The position after the last announcement."""
        return f"{self.life}-{self.last}"


class MemoryDeltas(Deltas):
    """Streams within one process."""

    def __init__(self, limit: int = MAX_ANNOUNCEMENTS) -> None:
        self._streams = defaultdict[str, _Stream](lambda: _Stream(limit))
        self._changed = threading.Condition()

    @override
    def announce(self, collection: str, hashes: Mapping[str, str]) -> None:
        if not hashes:
            return
        with self._changed:
            stream = self._streams[collection]
            stream.last += 1
            stream.kept.append(dict(hashes))
            self._changed.notify_all()

    @override
    def since(self, collection: str, position: str, wait: float = 0.0) -> Delta:
        deadline = time.monotonic() + wait
        with self._changed:
            while True:
                stream = self._streams[collection]
                life, number = _parts(position)
                missed = stream.last - number
                if life != stream.life or not 0 <= missed <= len(stream.kept):
                    return Delta(position=stream.end, gap=True)
                left = deadline - time.monotonic()
                if missed or left <= 0:
                    news = islice(stream.kept, len(stream.kept) - missed, None)
                    return Delta(position=stream.end, hashes=_union(news))
                self._changed.wait(left)

    @override
    def position(self, collection: str) -> str:
        with self._changed:
            return self._streams[collection].end

    @override
    def trim(self, collection: str, position: str) -> None:
        life, number = _parts(position)
        with self._changed:
            stream = self._streams[collection]
            if life == stream.life:
                while stream.kept and stream.last - len(stream.kept) < number:
                    stream.kept.popleft()

    @override
    def length(self, collection: str) -> int:
        with self._changed:
            return len(self._streams[collection].kept)

    @override
    def drop(self, collection: str) -> None:
        with self._changed:
            self._streams.pop(collection, None)
            self._changed.notify_all()


RETENTION_S = 7 * 86_400  # of a stream, after its last announcement
_BLOCK_S = 1.0  # the longest blocking read in Redis: the loss of a stream does not wake it

# A stream's ids are EPOCH-NUMBER: the microsecond of its start, and the announcement's number. So
# trimming shows as a jump in the numbers, and a stream that was lost and started again as another
# epoch. A server that restarts, or takes over from another, may have lost the last announcements
# without a trace. A stream's life therefore consists of the server's run id and the epoch.
_STREAM = """
local key, retention = KEYS[1], ARGV[1]
if redis.call('EXISTS', key) == 0 then
  local now = redis.call('TIME')
  local begun = now[1] .. string.format('%06d', now[2]) .. '-0'
  redis.call('XADD', key, 'MAXLEN', 0, begun, '', '')
  redis.call('EXPIRE', key, retention)
end
local epoch, last
local info = redis.call('XINFO', 'STREAM', key)
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then
    epoch, last = string.match(info[i + 1], '(%d+)-(%d+)')
  end
end
local life = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') .. '/' .. epoch
local function id(number) return epoch .. '-' .. string.format('%.0f', number) end
"""

# ARGV: the retention, the hashes, how many announcements to keep.
_ANNOUNCE = f"""{_STREAM}
redis.call('XADD', key, 'MAXLEN', '~', ARGV[3], id(last + 1), 'hashes', ARGV[2])
redis.call('EXPIRE', key, retention)
"""

# ARGV: the retention, a life and the number to continue from. Returns the stream's life, its last
# number and, if the lives are equal, the announcements after the number.
_READ = f"""{_STREAM}
local news = {{}}
if life == ARGV[2] then news = redis.call('XRANGE', key, '(' .. id(ARGV[3]), '+') end
return {{life, last, news}}
"""

# ARGV: the retention, a life and the last number to forget.
_TRIM = f"""{_STREAM}
if life == ARGV[2] then redis.call('XTRIM', key, 'MINID', id(ARGV[3] + 1)) end
"""


class RedisDeltas(Deltas):
    """Streams in Redis."""

    def __init__(self, server: "RedisServer", limit: int = MAX_ANNOUNCEMENTS) -> None:
        self._server = server
        self._limit = limit
        self._announce = server.script(_ANNOUNCE)
        self._read = server.script(_READ)
        self._trim = server.script(_TRIM)

    @override
    def announce(self, collection: str, hashes: Mapping[str, str]) -> None:
        if not hashes:
            return
        data = msgspec.json.encode(hashes)
        with self._server.translated():
            self._announce([self._key(collection)], [RETENTION_S, data, self._limit])

    @override
    def since(self, collection: str, position: str, wait: float = 0.0) -> Delta:
        deadline = time.monotonic() + wait
        while True:
            delta = self._since(collection, position)
            left = deadline - time.monotonic()
            if delta.gap or delta.hashes or left <= 0:
                return delta
            life, number = _parts(position)
            after = f"{life.partition('/')[2]}-{number}"
            milliseconds = max(1, int(1_000 * min(left, _BLOCK_S)))
            with self._server.translated():
                self._server.client.xread(
                    {self._key(collection): after}, count=1, block=milliseconds
                )

    @override
    def position(self, collection: str) -> str:
        return self._since(collection, "").position

    @override
    def trim(self, collection: str, position: str) -> None:
        with self._server.translated():
            self._trim([self._key(collection)], [RETENTION_S, *_parts(position)])

    @override
    def length(self, collection: str) -> int:
        with self._server.translated():
            return self._server.client.xlen(self._key(collection))

    @override
    def drop(self, collection: str) -> None:
        with self._server.translated():
            self._server.client.delete(self._key(collection))

    def _since(self, collection: str, position: str) -> Delta:
        life, number = _parts(position)
        with self._server.translated():
            current, last, news = self._read([self._key(collection)], [RETENTION_S, life, number])
        end = f"{current.decode()}-{int(last)}"
        if life != current.decode() or int(last) - number != len(news):
            return Delta(position=end, gap=True)
        try:
            hashes = [msgspec.json.decode(data, type=dict[str, str]) for _, (_, data) in news]
        except (msgspec.MsgspecError, ValueError):  # damaged: treated as lost
            return Delta(position=end, gap=True)
        return Delta(position=end, hashes=_union(hashes))

    def _key(self, collection: str) -> str:
        return self._server.key("deltas", collection)


def _parts(position: str) -> tuple[str, int]:
    """The life and the number in a position; an invalid position has no life."""
    found = re.fullmatch(r"([\w/]+)-(\d{1,15})", position, re.ASCII)
    return (found[1], int(found[2])) if found else ("", 0)


def _union(announcements: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The latest hash of each item in the announcements."""
    return {item: hash_ for one in announcements for item, hash_ in one.items()}
