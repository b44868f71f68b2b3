"""The lease: only one watch service of a namespace at a time may write the index.

It expires by the server's clock, so the clocks of the machines may differ by any amount.
"""

import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec
from typing_extensions import override

from repertory.coordination.clock import NOW
from repertory.text import clean

if TYPE_CHECKING:
    from repertory.coordination.redis_server import RedisServer

LEASE_S = 10.0  # after the last renewal; its holder renews it far more often


class Holder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A watch service that has the lease, or waits for it.

    Attributes:
        host, process: The name of its machine and its process there.
        directory: The directory that it watches.
        configuration: The hash of its configuration; empty while that is unknown.
        since: When it took the lease, or began to wait, in Unix seconds of the reader's clock.
    """

    host: str
    process: int
    directory: str
    configuration: str = ""
    since: float = 0.0

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}, in {self.directory}"


class Holders(msgspec.Struct, frozen=True, kw_only=True):
    """Who has the lease, if anybody, and who waits for it, the longest first."""

    holder: Holder | None = None
    waiting: list[Holder] = []


class Lease(Protocol):
    """The lease of a namespace; one object is one owner. Methods raise ``StoreError``."""

    def take(self, about: Holder) -> bool:
        """Take the lease or renew it, and return whether this owner has it now.

        A refused owner is listed as waiting during the next ``LEASE_S`` seconds.

        Args:
            about: The caller; its ``since`` is ignored.
        """
        ...

    @property
    def is_held(self) -> bool:
        """Whether this owner certainly has the lease: no other can have taken it yet."""
        ...

    def holders(self) -> Holders:
        """Who has the lease and who waits for it."""
        ...

    def release(self) -> None:
        """Release the lease, or stop waiting for it."""
        ...


class SoleLease(Lease):
    """The lease within one process: there is no other owner."""

    @override
    def take(self, about: Holder) -> bool:
        return True

    @property
    @override
    def is_held(self) -> bool:
        return True

    @override
    def holders(self) -> Holders:
        return Holders()

    @override
    def release(self) -> None:
        pass


# KEYS: the lease and the waiting owners. ARGV: an owner, its description, milliseconds.
_TAKE = f"""{NOW}
local ends = now + ARGV[3] / 1000
local id = redis.call('HGET', KEYS[1], 'id')
if id and id ~= ARGV[1] then
  local entry = redis.call('HGET', KEYS[2], ARGV[1])
  local since = entry and cmsgpack.unpack(entry)[2] or now
  redis.call('HSET', KEYS[2], ARGV[1], cmsgpack.pack({{ends, since, ARGV[2]}}))
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  return 0
end
if not id then
  redis.call('HSET', KEYS[1], 'id', ARGV[1], 'since', string.format('%.6f', now))
  redis.call('HDEL', KEYS[2], ARGV[1])
end
-- A server without memory refuses HSET, but it must not end the lease.
if redis.call('HGET', KEYS[1], 'about') ~= ARGV[2] then
  redis.call('HSET', KEYS[1], 'about', ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""

# KEYS: as above. Returns each description with the seconds it has held or waited: first the holder,
# or false, then the waiting owners.
_HOLDERS = f"""{NOW}
local found = {{}}
local about, since = unpack(redis.call('HMGET', KEYS[1], 'about', 'since'))
found[1] = about and {{about, string.format('%.6f', now - since)}} or false
for _, entry in ipairs(redis.call('HVALS', KEYS[2])) do
  local ends, since, about = unpack(cmsgpack.unpack(entry))
  if ends > now then found[#found + 1] = {{about, string.format('%.6f', now - since)}} end
end
return found
"""

# KEYS: as above. ARGV: an owner.
_RELEASE = """
redis.call('HDEL', KEYS[2], ARGV[1])
if redis.call('HGET', KEYS[1], 'id') == ARGV[1] then redis.call('DEL', KEYS[1]) end
"""


class RedisLease(Lease):
    """The lease in Redis: a hash that expires, and a hash of the waiting owners.

    Args:
        server: The server.
        seconds: How long the lease lasts without a renewal.
        clock: A monotonic clock, in seconds.
        now: The time of day, in Unix seconds.
    """

    def __init__(
        self,
        server: "RedisServer",
        *,
        seconds: float = LEASE_S,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._server = server
        self._milliseconds = max(1, int(seconds * 1_000))
        self._clock = clock
        self._now = now
        self._owner = uuid.uuid4().hex
        self._keys = [server.key("lease"), server.key("lease", "waiting")]
        self._take = server.script(_TAKE)
        self._holders = server.script(_HOLDERS)
        self._release = server.script(_RELEASE)
        self._held_until = float("-inf")

    @override
    def take(self, about: Holder) -> bool:
        # The name of a directory need not be valid Unicode.
        about = msgspec.structs.replace(about, directory=clean(about.directory))
        data = msgspec.json.encode(about)
        asked = self._clock()  # read before the server's clock, so this deadline comes first
        with self._server.translated():
            taken = self._take(self._keys, [self._owner, data, self._milliseconds])
        self._held_until = asked + self._milliseconds / 1_000 if taken else float("-inf")
        return bool(taken)

    @property
    @override
    def is_held(self) -> bool:
        return self._clock() < self._held_until

    @override
    def holders(self) -> Holders:
        with self._server.translated():
            found = self._holders(self._keys)
        now = self._now()
        holder, *others = [_read(one, now) for one in found]
        waiting = sorted(filter(None, others), key=lambda one: one.since)
        return Holders(holder=holder, waiting=waiting)

    @override
    def release(self) -> None:
        self._held_until = float("-inf")
        with self._server.translated():
            self._release(self._keys, [self._owner])


def _read(entry: tuple[bytes, bytes] | None, now: float) -> Holder | None:
    if entry is None:
        return None
    about, age = entry
    try:
        holder = msgspec.json.decode(about, type=Holder)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # of another release
        return None
    return msgspec.structs.replace(holder, since=now - float(age))
