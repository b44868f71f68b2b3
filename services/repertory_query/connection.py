"""A connection, which has to say what it wants in time."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 30.0  # seconds for a request to arrive whole


class Connection(H11Protocol):
    """Uvicorn's own protocol, with an end to requests that never come or come byte by byte.

    h11 bounds the head of a request, as the faster parser does not.
    """

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        # The type is uvicorn's: it is never given another kind of transport.
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Wait for what is missing of a request, until it is whole."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._wait_no_more()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(PATIENCE, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
