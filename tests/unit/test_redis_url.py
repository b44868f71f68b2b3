"""Valid and invalid Redis URLs, and error messages without secrets."""

import pytest

from repertory.coordination.redis_server import RedisServer
from repertory.errors import ConfigurationError


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://localhost:6379/0",
        "rediss://user:p%2Fss@redis.example.org:6380/12",
        "redis://:@redis:6379/0",
        "redis://[::1]:6379/",
        "redis://localhost/0?health_check_interval=10",
    ],
)
def test_valid_redis_urls_are_accepted(url: str) -> None:
    """A host is enough; user, password, port, database and parameters are optional."""
    RedisServer(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        "http://:secret@localhost:6379",
        "redis://",
        "redis://:secret@",
        "redis://:sec/ret@localhost",
        "redis://user:12/secret@localhost",
        "redis://user:12#secret@localhost",
        "redis://user:12?secret@localhost",
        "redis://:secret@localhost:port",
        "redis://:secret@localhost:0",
        "redis://:secret@localhost:99999",
        "redis://:secret@localhost/database",
        "redis://:secret@[::1",
        "redis://:secret@redis..example:6379",
        "redis://:secret@localhost?socket_timeout=secret",
        "redis://:secret@localhost?no_such_parameter=secret",
        "redis://:secret@localhost?max_connections=-1",
    ],
)
def test_invalid_redis_urls_are_refused(url: str) -> None:
    """They are refused at once, and the message shows no part of a password."""
    with pytest.raises(ConfigurationError, match="URL of the Redis") as refused:
        RedisServer(url)
    assert "sec" not in str(refused.value)
    assert "12" not in str(refused.value)
