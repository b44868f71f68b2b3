"""Statistics of an index, in the same format for one-shot commands and servers."""

import contextlib
import time
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from repertory.coordination.lease import Holder
from repertory.sources.source import Problem, Severity
from repertory.watch_status import SILENCE_S, Building, SaveTimes, SourceState, UnusedIndex


class Contents(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The contents of a catalogue, in numbers."""

    kinds: Annotated[
        dict[str, dict[str, int]],
        msgspec.Meta(description="The number of items by source and kind."),
    ]
    skills: Annotated[
        str, msgspec.Meta(description="A digest of the skills, which changes with them.")
    ]
    calls_allowed: Annotated[
        bool, msgspec.Meta(description="Whether the caller may call tools through this server.")
    ]
    changes_allowed: Annotated[
        bool, msgspec.Meta(description="Whether the caller may change skill vectors.")
    ] = True


class Lengths(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The numbers of waiting and failed jobs; null while the queue is unavailable.

    Also null for a caller who may not see every source, because a job may be of any source.
    """

    saves: int | None
    builds: int | None
    taken: Annotated[
        int | None,
        msgspec.Meta(description="Jobs that workers are doing, including retries."),
    ] = 0
    failed: int | None


class Worker(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The last report of a worker process.

    Attributes:
        at: The time of the report, in Unix seconds.
        busy: What it is doing; empty when it is idle.
        jobs, items: The numbers that it has done.
        error: Why it cannot work now; empty when it can.
    """

    worker: str
    at: float
    model: str = ""
    device: str = ""
    queues: list[str] = []
    busy: dict[str, Any] = {}
    jobs: int = 0
    items: int = 0
    error: str = ""

    @property
    def is_silent(self) -> bool:
        """Whether it has not reported for a while, because it ended or cannot reach Redis."""
        return time.time() - self.at > SILENCE_S


def workers_of(reports: Mapping[str, Mapping[str, Any]]) -> list[Worker]:
    """The reports of the workers, by name; incompatible ones of other releases are skipped."""
    found = []
    for name, report in sorted(reports.items()):
        with contextlib.suppress(msgspec.ValidationError):
            found.append(msgspec.convert({**report, "worker": name}, Worker))
    return found


class Watch(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The last report of the watch; see ``WatchStatus``.

    Attributes:
        pending: How many items are pending; null for a caller who may not see every source.
        saves: The durations of saves; null for a caller who may not see every source.
        holder: The active watch service of a team; null if none.
        waiting: The watch services that would take over.
    """

    at: float
    pending: int | None = 0
    saves: SaveTimes | None = None
    watching: list[str] = []
    polling: dict[str, str] = {}
    configuration_error: str = ""
    holder: Holder | None = None
    waiting: list[Holder] = []


class Verification(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The comparison of a query process's keyword index with the collection.

    Attributes:
        at: The end of the last pass over the whole collection, in Unix seconds; 0 for never.
        repaired: The number of missed items that it has repaired since it started.
    """

    at: float
    repaired: int


class Process(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One of several query processes behind one port.

    Attributes:
        number: Its number, from 1; a process that replaces it gets the same number.
        of: The number of processes.
        pid: Its process id.
    """

    number: int
    of: int
    pid: int


class Stats(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of an index."""

    index_version: Annotated[
        int, msgspec.Meta(description="Increases with every change of the searched index.")
    ]
    configuration: Annotated[str, msgspec.Meta(description="The configuration hash.")]
    collection: Annotated[str, msgspec.Meta(description="The searched collection.")]
    model: Annotated[
        str, msgspec.Meta(description="The model of its vectors; empty without vectors.")
    ]
    items: int
    kinds: Annotated[dict[str, int], msgspec.Meta(description="Items by kind.")]
    points: Annotated[
        int | None,
        msgspec.Meta(
            description="Stored vectors; null while the store is unavailable, and for a caller who "
            "may not see every source."
        ),
    ]
    missing: Annotated[
        dict[str, str],
        msgspec.Meta(description="Unavailable parts (`index`, `vectors`, `model`, …) and why."),
    ]
    verification: Annotated[
        Verification | None,
        msgspec.Meta(description="Of the answering process; null while it has no index."),
    ] = None
    process: Annotated[
        Process | None,
        msgspec.Meta(description="The answering process; null if it is the only one of its port."),
    ] = None
    calls_allowed: Annotated[
        bool, msgspec.Meta(description="Whether the caller may call tools through this server.")
    ] = False
    sources: list[SourceState]
    building: Building | None
    unused: Annotated[
        list[UnusedIndex],
        msgspec.Meta(description="Unused indexes, which are removed after a while."),
    ] = []
    queue: Lengths
    workers: list[Worker]
    problems: list[Problem]
    errors: Annotated[
        int, msgspec.Meta(description="The number of problems that kept an item out of the index.")
    ]
    warnings: int
    watch: Annotated[
        Watch | None,
        msgspec.Meta(description="The last report of the watch; null if it never reported."),
    ]
    counters: dict[str, float]

    @property
    def troubles(self) -> list[str]:
        """Errors of the system itself, rather than of a file, an item or an MCP server."""
        return [problem.message for problem in self.problems if _is_trouble(problem)]

    @property
    def faults(self) -> list[Problem]:
        """Problems of the indexed files, items and servers."""
        return [problem for problem in self.problems if not _is_trouble(problem)]


class Run(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of one run of indexing.

    Attributes:
        added, changed, removed, unchanged: Numbers of items. A new tag or path is a change, too.
        embedded: How many texts were embedded; the others already had vectors.
        seconds: Its duration.
        notices: What the user should know about the run itself.
        stats: The index after the run.
    """

    added: int
    changed: int
    removed: int
    unchanged: int
    embedded: int
    seconds: float
    notices: list[str]
    stats: Stats


class FailedJob(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A job that failed too often; ``at`` is in Unix seconds."""

    id: str
    items: list[str]
    error: str
    at: float
    attempts: int


class Jobs(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Pending jobs by queue, what each busy worker does, and the failed jobs.

    Attributes:
        waiting: The number of waiting jobs, by queue.
        taken: The number of jobs that workers are doing, including retries; null for a caller who
            may not see every source.
        running: The busy workers.
        failed: The failed jobs.
    """

    waiting: dict[str, int]
    taken: int | None = 0
    running: list[Worker]
    failed: list[FailedJob]


class Rebuild(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The generation of a configuration's collection that a rebuild began."""

    configuration: str
    generation: int


def _is_trouble(problem: Problem) -> bool:
    return problem.severity == Severity.ERROR and not (problem.path or problem.item)
