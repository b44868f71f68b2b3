"""A job: what is to be written to a collection, text and all, so that no worker needs the files."""

import uuid
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from repertory.catalogue.item import Item
from repertory.errors import JobError

VERSION = 1
MOST_ITEMS = 32  # of one job: about a second's work without a GPU
MOST_CHARACTERS = 1_000_000


class QueueName(StrEnum):
    """Which queue a job waits in: what somebody just saved goes before what is built in bulk."""

    SAVES = "saves"
    BUILDS = "builds"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Items to write and items to remove, as they were at one observation.

    Attributes:
        id: Unique; the same when the job is delivered again.
        collection: What to write to.
        revision: Of the observation; decides which of two writes of an item is newer.
        items: To write.
        removed: The ids of the items to remove.
        version: Of the format.
    """

    id: str
    collection: str
    revision: int
    items: tuple[Item, ...] = ()
    removed: tuple[str, ...] = ()
    version: int = VERSION

    def plain(self) -> dict[str, Any]:
        """The job as JSON values."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def split(self) -> "list[Job]":
        """A job for each item, so that one that cannot be done does not hold up the others."""
        apart = [{"items": (item,)} for item in self.items] + [
            {"removed": (item,)} for item in self.removed
        ]
        return [
            msgspec.structs.replace(
                self, **{"items": (), "removed": (), "id": f"{self.id}.{number}"} | part
            )
            for number, part in enumerate(apart)
        ]


def job_of(data: object) -> Job:
    """The job of some JSON values.

    Raises:
        JobError: They are none, or of another version.
    """
    version = data.get("version") if isinstance(data, dict) else None
    if version != VERSION:
        raise JobError(
            f"The job is of version {version!r}, and this worker does version {VERSION}; run the "
            "same release everywhere, then retry it."
        )
    try:
        return msgspec.convert(data, Job)
    except msgspec.ValidationError as error:
        raise JobError(f"The job cannot be read: {error}.") from error


def jobs(
    collection: str, revision: int, items: Sequence[Item], removed: Sequence[str]
) -> Iterator[Job]:
    """The jobs that write and remove items, none of them too large."""
    for start in range(0, len(removed), 1_000):
        gone = tuple(removed[start : start + 1_000])
        yield Job(id=_new_id(), collection=collection, revision=revision, removed=gone)
    chunk: list[Item] = []
    size = 0
    for item in items:
        length = len(item.body) + len(item.description)
        if chunk and (len(chunk) == MOST_ITEMS or size + length > MOST_CHARACTERS):
            yield Job(id=_new_id(), collection=collection, revision=revision, items=tuple(chunk))
            chunk, size = [], 0
        chunk.append(item)
        size += length
    if chunk:
        yield Job(id=_new_id(), collection=collection, revision=revision, items=tuple(chunk))


class JobQueue(Protocol):
    """Where jobs wait for a worker. Every method raises ``StoreError`` when it is unavailable.

    A worker does saves first, then the requests of ``begin`` and ``keep_keywords``, then builds. A
    job may be lost, done twice, or done late and out of order. Thread-safe.
    """

    def submit(self, job: Job, queue_name: QueueName, delay: float = 0.0) -> None:
        """Hand over a job, to be done at some time, at the earliest after a delay in seconds."""
        ...

    def begin(self, configuration: str, generation: int | None = None) -> None:
        """Request the collection that a configuration's items are written to.

        The worker knows the model. It finds or creates the collection, then points
        ``collections.next_alias`` at it.

        Args:
            configuration: The configuration hash.
            generation: Create this generation unless it exists; None takes the newest.
        """
        ...

    def keep_keywords(self, collection: str) -> None:
        """Request a new keyword snapshot of a collection; a missing collection is ignored."""
        ...

    def waiting(self) -> dict[str, int]:
        """How many jobs wait in each queue; delayed ones count, those a worker has do not."""
        ...


def _new_id() -> str:
    return uuid.uuid4().hex
