"""The contract of ``Lease``, tested within one process and on a real Redis."""

from types import SimpleNamespace

import pytest

from repertory.coordination.lease import Holder, Holders, Lease, RedisLease, SoleLease
from repertory.coordination.redis_server import RedisServer
from repertory.errors import StoreError
from tests.support.builders import DEEP_JSON
from tests.support.redis_server import RedisProcess
from tests.support.waiting import until

HOUR_S = 3_600.0


def about(process: int, configuration: str = "") -> Holder:
    """A watch service that asks for the lease."""
    return Holder(host="web1", process=process, directory="/srv/team", configuration=configuration)


def known(holder: Holder | None) -> tuple[int, str] | None:
    """The process and the configuration of a holder."""
    return (holder.process, holder.configuration) if holder else None


def waiting(lease: Lease) -> list[int]:
    """The processes that wait for the lease, in order."""
    return [one.process for one in lease.holders().waiting]


@pytest.fixture(params=["one process", "redis"])
def lease(request: pytest.FixtureRequest) -> Lease:
    """Each adapter in turn, with a free lease."""
    if request.param == "one process":
        return SoleLease()
    return RedisLease(RedisServer(request.getfixturevalue("redis_server").url))


@pytest.fixture
def server(redis_server: RedisProcess) -> RedisServer:
    """A connection to the Redis of the tests."""
    return RedisServer(redis_server.url)


def test_a_lease_is_taken_renewed_and_released(lease: Lease) -> None:
    """A lease can be taken again after its release, and then has no holder."""
    for _ in range(2):
        assert lease.take(about(1))
        assert lease.take(about(1))
        assert lease.is_held
        lease.release()
    assert lease.holders() == Holders()


def test_a_directory_name_may_be_invalid_unicode(lease: Lease) -> None:
    """The holder's directory is listed without its invalid characters."""
    assert lease.take(Holder(host="here", process=1, directory="/srv/caf\udce9"))
    assert lease.is_held
    holder = lease.holders().holder
    assert holder is None or holder.directory == "/srv/caf"


def test_a_process_that_waits_no_more_is_not_listed(server: RedisServer) -> None:
    """It leaves the list when its time is over, although others go on waiting."""
    holder, waits = RedisLease(server), RedisLease(server)
    gone = RedisLease(server, seconds=0.05)
    assert [lease.take(about(n)) for n, lease in enumerate((holder, gone, waits))] == [
        True,
        False,
        False,
    ]
    until(lambda: waiting(holder) == [2])
    assert known(holder.holders().holder) == (0, "")


def test_one_process_holds_the_lease_and_others_wait(server: RedisServer) -> None:
    """Waiting processes are listed in order of arrival until they get the lease or leave."""
    leases = [RedisLease(server) for _ in range(4)]
    assert [lease.take(about(n)) for n, lease in enumerate(leases)] == [True, False, False, False]
    assert [lease.is_held for lease in leases] == [True, False, False, False]
    assert leases[0].take(about(0, "abc"))
    assert not leases[1].take(about(1))  # asking again keeps the place in the line
    assert known(leases[3].holders().holder) == (0, "abc")
    assert waiting(leases[3]) == [1, 2, 3]
    leases[2].release()
    leases[0].release()
    assert known(leases[3].holders().holder) is None
    assert waiting(leases[3]) == [1, 3]
    assert leases[3].take(about(3))
    assert not leases[0].take(about(0))
    assert known(leases[0].holders().holder) == (3, "")
    assert waiting(leases[0]) == [1, 0]


def test_only_the_owner_releases_a_lease(server: RedisServer) -> None:
    """A release by a process that does not hold the lease has no effect."""
    one, other = RedisLease(server), RedisLease(server)
    assert one.take(about(1))
    other.release()
    assert not other.take(about(2))
    assert one.take(about(1))


def test_a_lease_expires_without_renewal(server: RedisServer) -> None:
    """By the server's clock, a dead owner loses the lease and waiting processes their places."""
    dead, other = (RedisLease(server, seconds=0.3) for _ in range(2))
    assert dead.take(about(1))
    assert not other.take(about(2))
    until(lambda: other.holders() == Holders())
    assert other.take(about(2))
    assert not dead.take(about(1))
    assert not dead.is_held


def test_a_renewal_restarts_the_time_to_live(server: RedisServer) -> None:
    """Each renewal restarts the time to live; the list of waiting processes also expires."""
    lease = RedisLease(server, seconds=60)
    lease.take(about(1))
    server.client.pexpire("repertory:lease", 5)
    assert lease.take(about(1))
    assert 50_000 < server.client.pttl("repertory:lease") <= 60_000
    RedisLease(server).take(about(2))
    assert 0 < server.client.pttl("repertory:lease:waiting") <= 10_000


def test_the_owner_stops_relying_on_a_lease_before_it_expires(server: RedisServer) -> None:
    """The owner counts the time from before its request, so no other can hold the lease yet."""
    clock = SimpleNamespace(time=100.0)
    lease = RedisLease(server, seconds=10, clock=lambda: clock.time)
    assert not lease.is_held
    lease.take(about(1))
    clock.time = 109.9
    assert lease.is_held
    clock.time = 110.0
    assert not lease.is_held
    lease.take(about(1))
    assert lease.is_held
    lease.release()
    assert not lease.is_held


def test_the_time_of_a_request_counts_as_time_of_the_lease(server: RedisServer) -> None:
    """A slow answer must not prolong it, as Redis began to count before it answered."""
    now = iter([0.0, 6.0, 6.0, 6.0])
    lease = RedisLease(server, seconds=5, clock=lambda: next(now))
    assert lease.take(about(1))
    assert not lease.is_held


@pytest.mark.parametrize("skew", [-24 * HOUR_S, 24 * HOUR_S])
def test_clocks_may_differ(server: RedisServer, skew: float) -> None:
    """The holder and its start time do not depend on the clocks of the processes."""
    now = 1_760_000_000.0
    one = RedisLease(server, clock=lambda: 5.0, now=lambda: now)
    other = RedisLease(server, clock=lambda: 5.0 + skew, now=lambda: now + skew)
    assert one.take(about(1))
    assert not other.take(about(2))
    for lease, time in ((one, now), (other, now + skew)):
        found = lease.holders()
        assert found.holder
        assert found.holder.since == pytest.approx(time, abs=30)
        assert [who.since for who in found.waiting] == pytest.approx([time], abs=30)


def test_a_lost_lease_goes_to_the_first_that_asks(redis_server: RedisProcess) -> None:
    """After Redis lost its data, the first process that asks gets the lease."""
    server = RedisServer(redis_server.url)
    one, other = RedisLease(server), RedisLease(server)
    one.take(about(1))
    redis_server.flush()
    assert other.take(about(2))
    assert not one.take(about(1))
    assert not one.is_held


def test_an_owner_of_another_version_keeps_its_lease(server: RedisServer) -> None:
    """An owner whose description cannot be read still holds the lease."""
    server.client.hset("repertory:lease", mapping={"id": "x", "since": "1.5", "about": b"\xff"})
    lease = RedisLease(server)
    assert not lease.take(about(1))
    assert lease.holders().holder is None


def test_a_full_redis_lets_the_owner_renew() -> None:
    """A full Redis accepts a renewal, which needs no memory, and refuses another process."""
    with RedisProcess() as process:
        server = RedisServer(process.url)
        lease = RedisLease(server)
        assert lease.take(about(1))
        server.client.config_set("maxmemory", "1")
        assert lease.take(about(1))
        with pytest.raises(StoreError, match="is full"):
            RedisLease(server).take(about(2))


def test_an_unavailable_redis_is_an_error() -> None:
    """Every request raises, and the lease is not held."""
    lease = RedisLease(RedisServer("redis://127.0.0.1:9/0"))
    for ask in (lambda: lease.take(about(1)), lease.holders, lease.release):
        with pytest.raises(StoreError, match="cannot be reached"):
            ask()
    assert not lease.is_held


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", DEEP_JSON])
def test_an_unreadable_holder_is_not_listed(server: RedisServer, data: bytes) -> None:
    """Any program with access to Redis may have written it."""
    leases = [RedisLease(server) for _ in range(2)]
    assert leases[0].take(about(1))
    assert not leases[1].take(about(2))
    server.client.hset("repertory:lease", "about", data)
    assert known(leases[1].holders().holder) is None
    assert waiting(leases[1]) == [2]
