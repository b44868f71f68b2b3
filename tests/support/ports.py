"""Unused ports."""

import contextlib
import random
import socket


def free_port() -> int:
    """A port below the system's range for connections, so that a restarted server keeps it."""
    while True:
        port = random.randrange(20_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as attempt:
            attempt.bind(("127.0.0.1", port))
            return port
