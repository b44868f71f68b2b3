"""Gathering: waiting jobs are done together, so that their texts are embedded in one batch."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from kombu import Connection, Queue
from kombu.exceptions import KombuError
from kombu.message import Message
from kombu.utils.encoding import bytes_to_str

_log = logging.getLogger(__name__)


@contextmanager
def waiting_beside(connection: Connection, queue: str) -> Iterator[Iterator[object]]:
    """The first arguments of the tasks that wait in a queue, each taken when it is iterated to.

    Leaving the context acknowledges the taken tasks, or puts them back if it is left by an error.
    A killed process does neither: its tasks are delivered again after Celery's visibility timeout.
    An unavailable broker has no tasks.
    """
    errors = connection.connection_errors + connection.channel_errors
    taken: list[Message] = []
    early: list[Message] = []  # not due yet; put back at the end, or they would come again here

    def take() -> Iterator[object]:
        try:
            bound = Queue(queue)(connection.default_channel)
            while message := bound.get(accept=["json"]):
                if _is_early(message):
                    early.append(message)
                    continue
                taken.append(message)
                yield _first_argument(message)
        except errors as error:
            _log.warning("gathering_ended", extra={"queue": queue, "error": str(error)})

    done = False
    try:
        yield take()
        done = True
    finally:
        for message in taken:
            if done:
                message.ack_log_error(_log, errors)
            else:
                message.reject_log_error(_log, errors, requeue=True)
        for message in early:
            message.reject_log_error(_log, errors, requeue=True)


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
