"""A connection with timeouts for receiving a request and for sending an answer."""

import asyncio
from urllib.parse import quote_from_bytes

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from repertory_query.sign_in.proxy import PEER

_ASCII = bytes(range(128))
TIMEOUT_S = 30.0  # for a whole request to arrive, and for the client to read a part of an answer


class Connection(H11Protocol):
    """Uvicorn's protocol with timeouts for slow requests and for clients that read no answer.

    Unread answers would stay in memory. This uses h11, because it limits the size of a request's
    head, while uvicorn's faster parser does not.
    """

    _request_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the request timeout."""
        # Uvicorn declares this type, too, and never passes another kind of transport.
        super().connection_made(transport)
        # The real peer: a proxy's headers may change the client of a request.
        self.app_state = {**self.app_state, PEER: self.client}
        self._start_request_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeouts."""
        self._cancel_request_timer()
        self._cancel_send_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Keep the request timeout running until the whole request has arrived."""
        super().data_received(data if data.isascii() else self._with_address_in_ascii(data))
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._start_request_timer()
        else:
            self._cancel_request_timer()

    def _with_address_in_ascii(self, data: bytes) -> bytes:
        """Percent-encode other bytes in the request line, because curl sends them as typed."""
        if self.conn.their_state is not h11.IDLE or b"\n" in self.conn.trailing_data[0]:
            return data
        line, end, rest = data.partition(b"\n")
        return quote_from_bytes(line, _ASCII).encode() + end + rest

    def on_response_complete(self) -> None:
        """Start the request timeout if a part of the next request has already arrived."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._start_request_timer()

    def pause_writing(self) -> None:
        """Start the send-stall timeout."""
        super().pause_writing()
        self._start_send_timer()

    def resume_writing(self) -> None:
        """Cancel the send-stall timeout."""
        self._cancel_send_timer()
        super().resume_writing()

    def _start_request_timer(self) -> None:
        if self._request_timer is None:
            self._request_timer = self.loop.call_later(TIMEOUT_S, self.transport.abort)

    def _cancel_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _start_send_timer(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._send_timer = self.loop.call_later(TIMEOUT_S, self._abort_unless_drained, left)

    def _abort_unless_drained(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._start_send_timer()
        else:
            self.transport.abort()

    def _cancel_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None
