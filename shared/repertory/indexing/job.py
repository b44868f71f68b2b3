"""A job: items to write to a collection, with their text, so that workers need no files."""

import uuid
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from repertory.catalogue.item import Item
from repertory.errors import JobError, NewerReleaseError
from repertory.indexing.collection_names import is_newer

VERSION = 1
MAX_ITEMS = 32  # per job
MAX_REMOVED = 1_000  # per job
# The JSON size of a job's items, or of its ids. A larger item has its own job. Such a job has about
# a hundred texts, which take about a second without a GPU. Newer saves wait for that long.
MAX_BYTES = 100_000

T = TypeVar("T")

# Untrusted: a stranger may have sent it. It becomes a Redis key, and numbers are parsed from it.
Name = Annotated[str, msgspec.Meta(pattern=r"\A[ -~]{1,500}\Z")]


class QueueName(StrEnum):
    """The queue of a job. Saves of a few items are done first."""

    SAVES = "saves"
    BUILDS = "builds"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Items to write and items to remove.

    Attributes:
        id: Unique, and unchanged when the job is delivered again.
        collection: The collection to write to.
        revision: Of two writes of an item, the higher revision wins.
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
        """One job per item, so that a failing item does not affect the others."""
        pieces = [
            *(replace(self, items=(item,), removed=()) for item in self.items),
            *(replace(self, items=(), removed=(item,)) for item in self.removed),
        ]
        return [replace(one, id=f"{self.id}.{number}") for number, one in enumerate(pieces)]


def job_of(data: object) -> Job:
    """Read a job from JSON values.

    Raises:
        NewerReleaseError: A newer release made the job or its collection.
        JobError: The data is not a job, or has an older version.
    """
    version = data.get("version") if isinstance(data, dict) else None
    if version != VERSION:
        kind = JobError
        if isinstance(version, int) and version > VERSION:
            kind = NewerReleaseError
        raise kind(
            f"The job has version {version!r}, but this worker needs version {VERSION}; run the "
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
    """Split items or ids into parts of at most ``most`` values and ``MAX_BYTES`` of JSON."""
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
    """Where jobs wait for a worker. Every method raises ``StoreError`` if the queue is unavailable.

    A worker does saves first, then the requests of ``begin``, then builds, and the requests of
    ``keep_keywords`` last. A job may be lost, done twice, or done late and out of order.
    Thread-safe.
    """

    def submit(self, job: Job, queue_name: QueueName, delay: float = 0.0) -> None:
        """Queue a job, which is done after at least ``delay`` seconds."""
        ...

    def begin(self, configuration: str, generation: int | None = None) -> None:
        """Request the target collection of a configuration.

        Only a worker knows the model. It finds or creates the collection, and points
        ``collection_names.next_alias`` to it.

        Args:
            configuration: The configuration hash.
            generation: The generation to create unless it exists; None uses the newest.
        """
        ...

    def keep_keywords(self, collection: str) -> None:
        """Request a new keyword snapshot of a collection; a missing collection is ignored.

        A request is ignored while another one for the collection waits. In an embedded server all
        are ignored, because its search has the index and stores it at the end.
        """
        ...

    def waiting(self) -> dict[str, int]:
        """The number of waiting jobs by queue, including delayed ones, without taken ones."""
        ...

    def taken(self) -> int:
        """The number of jobs that workers have taken; in a team, also of requests and retries."""
        ...


def _new_id() -> str:
    return uuid.uuid4().hex
