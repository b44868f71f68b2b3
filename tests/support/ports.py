"""Ports that nobody uses."""

import contextlib
import random
import socket


def free_port() -> int:
    """A port below those that the system gives to connections: nobody takes it while we restart."""
    while True:
        port = random.randrange(20_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as attempt:
            attempt.bind(("127.0.0.1", port))
            return port
