"""Find unused ports."""

import contextlib
import random
import socket


def free_port() -> int:
    """An unused port below the ephemeral range, so that a restarted server can use it again."""
    while True:
        port = random.randrange(20_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as attempt:
            attempt.bind(("127.0.0.1", port))
            return port
