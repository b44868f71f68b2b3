"""A connection, which has to say what it wants in time, and to take what it asked for."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 30.0  # seconds for a request to arrive whole, and for some of an answer to be taken


class Connection(H11Protocol):
    """Uvicorn's own protocol, with an end to requests that never come or come byte by byte.

    So it is with answers that are not taken, which are kept in memory for so long. h11 bounds the
    head of a request, as the faster parser does not.
    """

    _waiting: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        # The type is uvicorn's: it is never given another kind of transport.
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        self._write_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Wait for what is missing of a request, until it is whole."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._wait_no_more()

    def pause_writing(self) -> None:
        """See that what waits to be sent gets less."""
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        """It did."""
        self._write_no_more()
        super().resume_writing()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(PATIENCE, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _watch_writing(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._writing = self.loop.call_later(PATIENCE, self._see_less_than, left)

    def _see_less_than(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._watch_writing()
        else:
            self.transport.abort()

    def _write_no_more(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
