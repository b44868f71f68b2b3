"""Celery's consumer of messages, which follows an outage of Redis closely and logs it once."""

import logging

from celery.worker import consumer
from celery.worker.state import maybe_shutdown
from kombu import Connection
from typing_extensions import override

RETRY_INTERVAL_S = 2  # between two attempts to connect; Celery's pauses grow up to 30 s

_log = logging.getLogger(__name__)


class Consumer(consumer.Consumer):
    """Takes messages from Redis, and reconnects at short intervals.

    Attributes:
        error: Why it cannot take messages now; empty if it can.
    """

    error = ""

    @override
    def ensure_connected(self, conn: Connection) -> Connection:
        return conn.ensure_connection(
            lambda error, _: self._note(error),
            interval_max=RETRY_INTERVAL_S,
            callback=maybe_shutdown,
        )

    @override
    def on_connection_error_before_connected(self, exc: Exception) -> None:
        self._note(exc)

    @override
    def on_connection_error_after_connected(self, exc: Exception) -> None:
        self._note(exc)
        super().on_connection_error_after_connected(exc)

    @override
    def on_ready(self) -> None:
        super().on_ready()
        if self.error:
            _log.info("queue_available")
        self.error = ""

    def _note(self, error: Exception) -> None:
        """Log why Redis cannot be used, unless the reason is known."""
        if self.error != str(error):
            self.error = str(error)
            _log.warning("queue_unavailable", extra={"error": self.error})
