"""The contract of ``Claims``, tested in memory and on a real Redis."""

import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.coordination.claims import Claims, MemoryClaims, RedisClaims
from repertory.coordination.redis_server import RedisServer
from tests.support.laws import ids, laws
from tests.support.redis_server import RedisProcess


@pytest.fixture(params=["memory", "redis"])
def claims(request: pytest.FixtureRequest) -> Claims:
    """Each adapter in turn, with the claims of one process."""
    if request.param == "memory":
        return MemoryClaims()
    return RedisClaims(RedisServer(request.getfixturevalue("redis_server").url))


def test_a_name_is_claimed_once(claims: Claims) -> None:
    """A name can be claimed again only after its release or end; duplicate names are allowed."""
    assert claims.take([], 60) == set()
    assert claims.take(["a", "b", "a"], 60) == {"a", "b"}
    assert claims.take(["a", "c"], 60) == {"c"}
    claims.release(["a", "never taken"])
    claims.release([])
    assert claims.take(["a", "b", "c"], 60) == {"a"}
    claims.end(["b", "never taken"])
    claims.end([])
    assert claims.take(["a", "b", "c"], 60) == {"b"}


@laws
@given(st.lists(st.tuples(st.booleans(), st.sets(ids)), max_size=12))
def test_claims_are_exclusive(claims: Claims, steps: list[tuple[bool, set[str]]]) -> None:
    """After any claims and releases, exactly the names that are not held can be claimed."""
    held: set[str] = set()
    for taking, names in steps:
        if taking:
            assert claims.take(sorted(names), 60) == names - held
            held |= names
        else:
            claims.release(names)
            held -= names
    claims.release(held)


def test_threads_never_share_a_claim(claims: Claims) -> None:
    """When many threads claim the same names, each name goes to one thread."""
    names = [f"text {number}" for number in range(50)]
    taken: list[str] = []
    together = threading.Barrier(8)

    def ask() -> None:
        together.wait()
        for name in names:
            taken.extend(claims.take([name], 60))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(names)


def test_claims_in_memory_expire() -> None:
    """An unreleased claim can be taken by others after its time to live."""
    now = SimpleNamespace(time=0.0)
    claims = MemoryClaims(lambda: now.time)
    claims.take(["a"], 10)
    now.time = 9.9
    assert claims.take(["a"], 10) == set()
    now.time = 10.0
    assert claims.take(["a"], 10) == {"a"}


def test_claims_in_redis_expire_and_have_an_owner(redis_server: RedisProcess) -> None:
    """Until a claim expires, other processes can neither take nor release it, but can end it."""
    one, other = (RedisClaims(RedisServer(redis_server.url)) for _ in range(2))
    assert one.take(["a"], 0.5) == {"a"}
    server = RedisServer(redis_server.url)
    assert 0 < server.client.pttl("repertory:claim:a") <= 500
    other.release(["a"])
    assert other.take(["a"], 60) == set()
    one.release(["a"])
    assert other.take(["a"], 60) == {"a"}
    one.end(["a"])
    assert one.take(["a"], 60) == {"a"}
