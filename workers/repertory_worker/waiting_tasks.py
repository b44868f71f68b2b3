"""The tasks that wait in a queue, which a worker takes to do them together in one batch."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from kombu import Connection, Queue
from kombu.exceptions import KombuError
from kombu.message import Message
from kombu.utils.encoding import bytes_to_str
from typing_extensions import override

from repertory.telemetry.spans import PARENT

_log = logging.getLogger(__name__)


class WaitingTasks(Iterator[object]):
    """Takes waiting tasks from a queue, one per iteration, and yields their first arguments.

    The iteration ends if the broker is unavailable.
    """

    def __init__(self, connection: Connection, queue: str) -> None:
        self._connection = connection
        self._queue = queue
        self._errors = connection.connection_errors + connection.channel_errors
        self._taken: list[Message] = []
        self._left: list[Message] = []  # put back at the end, or they would be taken again

    @property
    def tags(self) -> list[str]:
        """The delivery tags of the taken tasks."""
        return [message.delivery_tag for message in self._taken if message.delivery_tag]

    @override
    def __next__(self) -> object:
        try:
            bound = Queue(self._queue)(self._connection.default_channel)
            while message := bound.get(accept=["json"]):
                if not _is_early(message):
                    self._taken.append(message)
                    return _first_argument(message)
                self._left.append(message)
        except self._errors as error:
            _log.warning("gathering_ended", extra={"queue": self._queue, "error": str(error)})
        raise StopIteration

    @property
    def parents(self) -> list[str]:
        """The ``traceparent`` of each taken task; empty if missing."""
        return [str(message.headers.get(PARENT) or "") for message in self._taken]

    def leave(self) -> None:
        """Do not keep the last taken task; ``end`` puts it back."""
        self._left.append(self._taken.pop())

    def end(self) -> None:
        """Put tasks that were left or are not due yet back into the queue."""
        for message in self._left:
            message.reject_log_error(_log, self._errors, requeue=True)
        self._left.clear()

    def settle(self, *, done: bool) -> None:
        """Acknowledge the taken tasks if they are done; otherwise put them back."""
        for message in self._taken:
            if done:
                message.ack_log_error(_log, self._errors)
            else:
                message.reject_log_error(_log, self._errors, requeue=True)
        self._taken.clear()


@contextmanager
def waiting_beside(connection: Connection, queue: str) -> Iterator[WaitingTasks]:
    """Take waiting tasks from a queue.

    At the end of the context, taken tasks are acknowledged, or put back after an error. If the
    process is killed, they are delivered again; see ``CeleryQueue.renew``.
    """
    tasks = WaitingTasks(connection, queue)
    done = False
    try:
        yield tasks
        done = True
    finally:
        tasks.settle(done=done)
        tasks.end()


def _is_early(message: Message) -> bool:
    due: str | None = message.headers.get("eta")
    return due is not None and datetime.fromisoformat(due) > datetime.now(UTC)


def _first_argument(message: Message) -> object:
    try:
        payload = message.payload
    except (KombuError, ValueError):
        payload = None
    match payload:
        case [[argument, *_], *_]:
            return argument
        case _:  # not one of our tasks
            return bytes_to_str(message.body or "")
