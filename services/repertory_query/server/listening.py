"""The socket of a service. This imports little: a server listens before it imports the rest."""

import socket

from repertory.errors import UsageError
from repertory.settings import Settings


def listening(settings: Settings) -> socket.socket:
    """A socket on the address to serve on.

    Raises:
        UsageError: The address is unavailable.
    """
    host, port = settings.values.host, settings.values.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2_048)
        # Accepted connections inherit it; asyncio sets it only if the protocol number is given.
        # Without it, the body of an answer waits 40 ms for the client to acknowledge the head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while ")[0]  # without the address
        raise UsageError(
            f"Cannot serve on {host} port {port}: {reason}; choose others with "
            "--host and --port, or end what uses it."
        ) from error
