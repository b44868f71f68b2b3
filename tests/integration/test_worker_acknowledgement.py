"""A worker whose Redis dies while it acknowledges a message takes the next one later."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kombu import Connection
from redis import RedisError

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
def test_a_message_that_cannot_be_ended_blocks_no_other(end: Callable[[Any], None]) -> None:
    """A worker takes as many messages as it can do, so it would wait for this one for ever."""
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
