"""The keyword snapshots of a team, in Redis.

Import this module only when a Redis is configured.
"""

from typing import cast

from repertory.coordination.redis_server import RedisServer

LASTING = 30 * 86_400  # seconds: one that nobody saved for so long is not searched any more
PIECE = 4 << 20  # bytes sent at once: each is given the connection's time limit to itself


class RedisSnapshots:
    """Snapshots in Redis: a list of pieces each, which expires."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    def load(self, collection: str) -> bytes | None:
        """The snapshot of a collection, or None where there is none."""
        with self._server.translated():
            pieces = cast("list[bytes]", self._server.client.lrange(_key(collection), 0, -1))
        return b"".join(pieces) or None

    def save(self, collection: str, data: bytes) -> None:
        """Replace the snapshot of a collection at once."""
        key, whole = _key(collection), memoryview(data)
        with self._server.translated(), self._server.client.pipeline() as transaction:
            transaction.delete(key)
            for start in range(0, len(whole), PIECE):
                transaction.rpush(key, whole[start : start + PIECE])
            transaction.expire(key, LASTING)
            transaction.execute()

    def drop(self, collection: str) -> None:
        """Forget the snapshot of a collection."""
        with self._server.translated():
            self._server.client.delete(_key(collection))


def _key(collection: str) -> str:
    return f"repertory:keywords:{collection}"
