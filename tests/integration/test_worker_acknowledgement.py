"""Messages that a worker took but cannot acknowledge, because it or its Redis ends."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from kombu import Connection
from redis import RedisError

from repertory.indexing.celery_queue import VISIBILITY_TIMEOUT_S
from repertory_worker.messages import Transport
from tests.support.redis_server import RedisProcess


@pytest.mark.parametrize(
    "end",
    [
        lambda qos: qos.ack("tag"),
        lambda qos: qos.reject("tag"),
        lambda qos: qos.reject("tag", requeue=True),
    ],
    ids=["acknowledged", "rejected", "returned"],
)
def test_a_message_that_cannot_be_acknowledged_blocks_no_other(end: Callable[[Any], None]) -> None:
    """Otherwise it would count against the prefetch limit of the worker forever."""
    server = RedisProcess()
    try:
        with Connection(server.url, transport=Transport) as connection:
            channel: Any = connection.channel()
            channel.basic_qos(0, 1, False)
            message = SimpleNamespace(delivery_info={"exchange": "", "routing_key": "q"}, _raw={})
            channel.qos.append(message, "tag")
            assert not channel.qos.can_consume()
            server.kill()
            with pytest.raises((RedisError, OSError)):
                end(channel.qos)
            assert channel.qos.can_consume()
    finally:
        server.stop()


@pytest.mark.parametrize("others", [-3_600.0, 0.0, 3_600.0])
@pytest.mark.parametrize(("lease", "returned"), [(-1.0, 1), (20.0, 0)])
def test_a_message_returns_once_its_lease_has_ended(
    monkeypatch: pytest.MonkeyPatch, lease: float, returned: int, others: float
) -> None:
    """Taking it sets its first lease, even if the clock of another worker is wrong."""
    monkeypatch.setattr("repertory.indexing.celery_queue.LEASE_S", lease)
    with (
        RedisProcess() as server,
        Connection(
            server.url,
            transport=Transport,
            transport_options={"visibility_timeout": VISIBILITY_TIMEOUT_S},
        ) as connection,
        redis.Redis.from_url(server.url) as client,
    ):
        channel: Any = connection.channel()
        message = SimpleNamespace(
            delivery_info={"exchange": "", "routing_key": "q"},
            _raw={"headers": {}, "properties": {"delivery_info": {}}},
        )
        channel.qos.append(message, "tag")
        there = time.time() + others
        monkeypatch.setattr("time.time", lambda: there)
        monkeypatch.setattr("kombu.transport.redis.time", lambda: there)
        channel.qos.restore_visible()
        assert client.llen("q") == returned
        channel.qos.ack("tag")  # or closing would return it
        channel._disconnect_pools()  # kombu would do so only at exit
