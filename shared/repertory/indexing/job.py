"""A job: items to write to a collection, with their text, so that workers need no files."""

import uuid
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from repertory.catalogue.item import Item
from repertory.errors import JobError, NewerReleaseError
from repertory.indexing.collection_names import is_newer

VERSION = 1
MAX_ITEMS = 32  # per job
MAX_REMOVED = 1_000  # per job
# Of a job's items as JSON, or of its ids; one larger item is a job of its own. It has a hundred
# texts or so: about a second of work without a GPU, for which newer saves wait.
MAX_BYTES = 100_000

T = TypeVar("T")

# A stranger may have written it. It becomes a key in Redis, and numbers are read from it.
Name = Annotated[str, msgspec.Meta(pattern=r"\A[ -~]{1,500}\Z")]


class QueueName(StrEnum):
    """The queue that a job waits in: saves of a few items go before all else."""

    SAVES = "saves"
    BUILDS = "builds"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Items to write and items to remove, as one scan found them.

    Attributes:
        id: Unique; the same when the job is delivered again.
        collection: The collection to write to.
        revision: Decides which of two writes of an item is newer.
        items: The items to write.
        removed: The ids of the items to remove.
        version: The version of this format.
    """

    id: Name
    collection: Name
    revision: int
    items: tuple[Item, ...] = ()
    removed: tuple[str, ...] = ()
    version: int = VERSION

    def plain(self) -> dict[str, Any]:
        """The job as JSON values."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def split(self) -> "list[Job]":
        """A job for each item, so that a failing one does not hold up the others."""
        apart: list[tuple[tuple[Item, ...], tuple[str, ...]]] = [
            *(((item,), ()) for item in self.items),
            *(((), (item,)) for item in self.removed),
        ]
        return [
            msgspec.structs.replace(self, id=f"{self.id}.{number}", items=items, removed=removed)
            for number, (items, removed) in enumerate(apart)
        ]


def job_of(data: object) -> Job:
    """Read a job from JSON values.

    Raises:
        NewerReleaseError: A newer release made them, or the collection that they write to.
        JobError: They are no job, or one of an older version.
    """
    version = data.get("version") if isinstance(data, dict) else None
    if version != VERSION:
        kind = JobError
        if isinstance(version, int) and version > VERSION:
            kind = NewerReleaseError
        raise kind(
            f"The job is of version {version!r}, and this worker does version {VERSION}; run the "
            "same release everywhere."
        )
    try:
        job = msgspec.convert(data, Job)
    except msgspec.ValidationError as error:
        raise JobError(f"The job cannot be read: {error}.") from error
    if is_newer(job.collection):
        raise NewerReleaseError(
            f"The collection {job.collection} has a newer embedding recipe than this worker; run "
            "the same release everywhere."
        )
    return job


def jobs(
    collection: str, revision: int, items: Sequence[Item], removed: Sequence[str]
) -> Iterator[Job]:
    """Split writes and removals into jobs of a bounded size."""
    for gone in _chunks(removed, MAX_REMOVED):
        yield Job(id=_new_id(), collection=collection, revision=revision, removed=gone)
    for some in _chunks(items, MAX_ITEMS):
        yield Job(id=_new_id(), collection=collection, revision=revision, items=some)


def _chunks(values: Sequence[T], most: int) -> Iterator[tuple[T, ...]]:
    """Split items or ids so that each part has at most so many, and ``MAX_BYTES`` of JSON."""
    chunk: list[T] = []
    size = 0
    for value in values:
        length = len(msgspec.json.encode(value))
        if chunk and (len(chunk) == most or size + length > MAX_BYTES):
            yield tuple(chunk)
            chunk, size = [], 0
        chunk.append(value)
        size += length
    if chunk:
        yield tuple(chunk)


class JobQueue(Protocol):
    """Where jobs wait for a worker. Every method raises ``StoreError`` when it is unavailable.

    A worker does saves first, then the requests of ``begin``, then builds, and the requests of
    ``keep_keywords`` last. A job may be lost, done twice, or done late and out of order.
    Thread-safe.
    """

    def submit(self, job: Job, queue_name: QueueName, delay: float = 0.0) -> None:
        """Hand over a job, to be done at some time, at the earliest after a delay in seconds."""
        ...

    def begin(self, configuration: str, generation: int | None = None) -> None:
        """Request the collection that a configuration's items are written to.

        The worker knows the model. It finds or creates the collection, then points
        ``collection_names.next_alias`` at it.

        Args:
            configuration: The configuration hash.
            generation: Create this generation unless it exists; None takes the newest.
        """
        ...

    def keep_keywords(self, collection: str) -> None:
        """Request a new keyword snapshot of a collection; a missing collection is ignored.

        While one waits, another for the same collection is ignored. In one process all of them
        are: its search has the index, and stores it at the end.
        """
        ...

    def waiting(self) -> dict[str, int]:
        """How many jobs wait in each queue; delayed ones count, those a worker has do not."""
        ...

    def taken(self) -> int:
        """How many jobs workers have, and in a team requests: being done, or to be tried again."""
        ...


def _new_id() -> str:
    return uuid.uuid4().hex
