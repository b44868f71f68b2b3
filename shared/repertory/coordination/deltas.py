"""Deltas: which items of a collection were just written or removed.

A delta is a hint: it carries no content, the collection has that. So deltas may be repeated and out
of order, and whoever missed some compares its hashes with the collection's.
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

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

REMOVED = ""  # stands for the hash of an item that was removed
MOST_ANNOUNCEMENTS = 10_000  # kept of a stream; compaction trims it long before


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """What happened since a position.

    Attributes:
        position: Where to read on from.
        hashes: The items, by id, with their metadata hashes; ``REMOVED`` for those that are gone.
        gap: Whether some that happened may be missing: they were trimmed away, or lost.
    """

    position: str
    hashes: dict[str, str] = {}
    gap: bool = False


class Deltas(Protocol):
    """The stream of each collection. Every method raises ``StoreError`` when it cannot be had.

    A position is opaque. The empty one is "I know nothing", and reading from it yields a gap. So
    does any that this stream did not give: it was lost and begun anew since, or may have been.
    """

    def announce(self, collection: str, hashes: Mapping[str, str]) -> None:
        """Say that items were written or removed, after they were; of none, nothing is said."""
        ...

    def since(self, collection: str, position: str, wait: float = 0.0) -> Delta:
        """What was announced after a position, all that is there in one delta.

        A gap carries no hashes: its position is where the stream ends, so take it, and compare.

        Args:
            collection: The collection; one that nothing was ever announced of is quiet, no gap.
            position: Of an earlier delta, from ``position``, or empty.
            wait: Seconds to wait for something to be announced if nothing was.
        """
        ...

    def position(self, collection: str) -> str:
        """Where the stream ends now: take it before reading the collection itself."""
        ...

    def trim(self, collection: str, position: str) -> None:
        """Forget what was announced up to a position; one that would be a gap is passed over.

        For whoever has read up to there that is no gap, for whoever has not it is one.
        """
        ...

    def length(self, collection: str) -> int:
        """How many announcements are kept, about ``MOST_ANNOUNCEMENTS`` at most."""
        ...

    def drop(self, collection: str) -> None:
        """Forget the stream of a collection; one that is not there is passed over."""
        ...


class _Stream:
    """What is kept of one stream: its announcements have numbers, which grow by one."""

    def __init__(self) -> None:
        self.life = uuid.uuid4().hex
        self.last = 0
        self.kept: deque[Mapping[str, str]] = deque(maxlen=MOST_ANNOUNCEMENTS)


class MemoryDeltas:
    """Streams within one process."""

    def __init__(self) -> None:
        self._streams: defaultdict[str, _Stream] = defaultdict(_Stream)
        self._changed = threading.Condition()

    def announce(self, collection: str, hashes: Mapping[str, str]) -> None:
        """Say that items were written or removed, after they were."""
        if not hashes:
            return
        with self._changed:
            stream = self._streams[collection]
            stream.last += 1
            stream.kept.append(dict(hashes))
            self._changed.notify_all()

    def since(self, collection: str, position: str, wait: float = 0.0) -> Delta:
        """What was announced after a position, all that is there in one delta."""
        deadline = time.monotonic() + wait
        with self._changed:
            while True:
                stream = self._streams[collection]
                end = _position(stream.life, stream.last)
                life, number = _parts(position)
                missed = stream.last - number
                if life != stream.life or not 0 <= missed <= len(stream.kept):
                    return Delta(position=end, gap=True)
                left = deadline - time.monotonic()
                if missed or left <= 0:
                    news = islice(stream.kept, len(stream.kept) - missed, None)
                    return Delta(position=end, hashes=_union(news))
                self._changed.wait(left)

    def position(self, collection: str) -> str:
        """Where the stream ends now."""
        with self._changed:
            stream = self._streams[collection]
            return _position(stream.life, stream.last)

    def trim(self, collection: str, position: str) -> None:
        """Forget what was announced up to a position."""
        life, number = _parts(position)
        with self._changed:
            stream = self._streams[collection]
            if life == stream.life:
                while stream.kept and stream.last - len(stream.kept) < number:
                    stream.kept.popleft()

    def length(self, collection: str) -> int:
        """How many announcements are kept."""
        with self._changed:
            return len(self._streams[collection].kept)

    def drop(self, collection: str) -> None:
        """Forget the stream of a collection."""
        with self._changed:
            self._streams.pop(collection, None)
            self._changed.notify_all()


_LASTING = 7 * 86_400  # seconds that a stream is kept after its last announcement
_BLOCKED = 1.0  # seconds that a read waits in Redis: a stream that is lost does not wake it

# A stream's ids are EPOCH-NUMBER: the microsecond when it was begun, and one more with each
# announcement. So what was trimmed shows as a jump of the number, and a stream that was lost and
# begun anew as another epoch. A server that restarts, or takes over from another, may have lost
# the last announcements without a trace: so a stream's life is the server's run and the epoch.
_STREAM = """
local key, lasting = KEYS[1], ARGV[1]
if redis.call('EXISTS', key) == 0 then
  local now = redis.call('TIME')
  local begun = now[1] .. string.format('%06d', now[2]) .. '-0'
  redis.call('XADD', key, 'MAXLEN', 0, begun, '', '')
  redis.call('EXPIRE', key, lasting)
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

# ARGV: how long to keep the stream, the hashes, the most announcements to keep.
_ANNOUNCE = f"""{_STREAM}
redis.call('XADD', key, 'MAXLEN', '~', ARGV[3], id(last + 1), 'hashes', ARGV[2])
redis.call('EXPIRE', key, lasting)
"""

# ARGV: how long to keep the stream, a life and the number to read on from. Gives the stream's life
# and last number and, if it is that life, what was announced after the number.
_READ = f"""{_STREAM}
local news = {{}}
if life == ARGV[2] then news = redis.call('XRANGE', key, '(' .. id(ARGV[3]), '+') end
return {{life, last, news}}
"""

# ARGV: how long to keep the stream, a life and the last number to forget.
_TRIM = f"""{_STREAM}
if life == ARGV[2] then redis.call('XTRIM', key, 'MINID', id(ARGV[3] + 1)) end
"""


class RedisDeltas:
    """Streams in Redis."""

    def __init__(self, server: "RedisServer") -> None:
        self._server = server
        self._announce = server.script(_ANNOUNCE)
        self._read = server.script(_READ)
        self._trim = server.script(_TRIM)

    def announce(self, collection: str, hashes: Mapping[str, str]) -> None:
        """Say that items were written or removed, after they were."""
        if not hashes:
            return
        data = msgspec.json.encode(hashes)
        with self._server.translated():
            self._announce([_key(collection)], [_LASTING, data, MOST_ANNOUNCEMENTS])

    def since(self, collection: str, position: str, wait: float = 0.0) -> Delta:
        """What was announced after a position, all that is there in one delta."""
        deadline = time.monotonic() + wait
        while True:
            delta = self._since(collection, position)
            left = deadline - time.monotonic()
            if delta.gap or delta.hashes or left <= 0:
                return delta
            life, number = _parts(position)
            after = f"{life.partition('/')[2]}-{number}"
            milliseconds = max(1, int(1_000 * min(left, _BLOCKED)))
            with self._server.translated():
                self._server.client.xread({_key(collection): after}, count=1, block=milliseconds)

    def position(self, collection: str) -> str:
        """Where the stream ends now."""
        return self._since(collection, "").position

    def trim(self, collection: str, position: str) -> None:
        """Forget what was announced up to a position."""
        with self._server.translated():
            self._trim([_key(collection)], [_LASTING, *_parts(position)])

    def length(self, collection: str) -> int:
        """How many announcements are kept."""
        with self._server.translated():
            return self._server.client.xlen(_key(collection))

    def drop(self, collection: str) -> None:
        """Forget the stream of a collection."""
        with self._server.translated():
            self._server.client.delete(_key(collection))

    def _since(self, collection: str, position: str) -> Delta:
        life, number = _parts(position)
        with self._server.translated():
            now, last, news = self._read([_key(collection)], [_LASTING, life, number])
        end = _position(now.decode(), int(last))
        if life != now.decode() or int(last) - number != len(news):
            return Delta(position=end, gap=True)
        try:
            hashes = [msgspec.json.decode(data, type=dict[str, str]) for _, (_, data) in news]
        except (msgspec.MsgspecError, UnicodeDecodeError):  # damaged: as good as lost
            return Delta(position=end, gap=True)
        return Delta(position=end, hashes=_union(hashes))


def _key(collection: str) -> str:
    return f"repertory:deltas:{collection}"


def _position(life: str, number: int) -> str:
    return f"{life}-{number}"


def _parts(position: str) -> tuple[str, int]:
    """The life of a stream and the number in a position; no life if it is none."""
    found = re.fullmatch(r"([\w/]+)-(\d{1,15})", position, re.ASCII)
    return (found[1], int(found[2])) if found else ("", 0)


def _union(announcements: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What holds after all of them: of two for one item, the later."""
    hashes: dict[str, str] = {}
    for one in announcements:
        hashes.update(one)
    return hashes
