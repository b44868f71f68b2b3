"""A Redis that evicts keys when it is full: lost jobs are noticed and sent again."""

import pytest
import redis

from tests.support.waiting import until
from tests.support.watches import Watches

ROOM = 300_000  # bytes that are left for keys
PIECE = b"x" * 10_000


@pytest.mark.timeout(240)
@pytest.mark.parametrize("policy", ["allkeys-random", "volatile-ttl"])
def test_the_index_finally_equals_the_folder_despite_evictions(
    watches: Watches, policy: str
) -> None:
    """Jobs, announcements, tombstones and the lease may vanish while saves continue."""
    watches.start("team")
    until(lambda: watches.items() == ["project/team"])
    names = [f"skill-{number:02}" for number in range(25)]
    with redis.Redis.from_url(watches.redis.url) as client:
        client.config_set("maxmemory-policy", policy)
        client.config_set("maxmemory", int(client.info("memory")["used_memory"]) + ROOM)
        for name in names:
            watches.save("team", name)
            for number in range(20):
                client.set(f"{name}-{number}", PIECE, ex=3_600)
        watches.remove("team", names.pop())
        for number in range(200):
            client.set(f"more-{number}", PIECE, ex=3_600)
        assert int(client.info("stats")["evicted_keys"]) > 500
    watches.save("team", "last")
    expected = sorted(f"project/{name}" for name in (*names, "last", "team"))
    until(lambda: watches.items() == expected)
