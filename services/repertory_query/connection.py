"""A connection with timeouts for the request to arrive and for the answer to be taken."""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from repertory_query.sign_in.proxy import PEER

TIMEOUT_S = 30.0  # for a request to arrive whole, and for a part of an answer to be taken


class Connection(H11Protocol):
    """Uvicorn's protocol with timeouts for slow requests and for answers that are not taken.

    Such answers stay in memory. h11 bounds the head of a request; the faster parser does not.
    """

    _waiting: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the request timeout."""
        # The type is uvicorn's: it is never given another kind of transport.
        super().connection_made(transport)
        # Proxies may change the client that a request shows, and not this.
        self.app_state = {**self.app_state, PEER: self.client}
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeouts."""
        self._wait_no_more()
        self._write_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Restart the request timeout until the request is whole."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        """Start the request timeout for a part of another request that arrived before."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._wait()

    def pause_writing(self) -> None:
        """Start the send-stall timeout."""
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        """Cancel the send-stall timeout."""
        self._write_no_more()
        super().resume_writing()

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(TIMEOUT_S, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _watch_writing(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._writing = self.loop.call_later(TIMEOUT_S, self._see_less_than, left)

    def _see_less_than(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._watch_writing()
        else:
            self.transport.abort()

    def _write_no_more(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
