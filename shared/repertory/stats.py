"""Statistics of an index, in the same format for one-shot commands and servers."""

import contextlib
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from repertory.coordination.lease import Holder
from repertory.coordination.status import WATCH, StatusBoard
from repertory.sources.source import Problem, Severity

LATE_S = 30.0  # how long a change waits before searches report it
SILENCE_S = 60.0  # after which a process counts as stopped; each one reports every few seconds


class SourceState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A source as it was last scanned."""

    name: str
    type: str
    location: str
    items: Annotated[int, msgspec.Meta(description="The number of its items in the index.")]
    stale: Annotated[int, msgspec.Meta(description="Items kept although they are unreadable now.")]
    error: Annotated[
        str, msgspec.Meta(description="Why the last scan failed; empty if it did not.")
    ]
    awaits_trust: Annotated[
        bool, msgspec.Meta(description="Whether it runs only after the user trusts it.")
    ] = False
    awaits_sign_in: Annotated[
        bool, msgspec.Meta(description="Whether its server asks for a sign-in, by OAuth.")
    ] = False
    is_starting: Annotated[
        bool, msgspec.Meta(description="Whether its first scan is still running.")
    ] = False
    quarantined: Annotated[
        int, msgspec.Meta(description="Its items that await approval, and are not indexed.")
    ] = 0
    visible_to: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="The groups that may see its items; empty for everyone."),
    ] = ()
    seen: Annotated[
        float,
        msgspec.Meta(description="The time of its last full scan, in Unix seconds; 0 for never."),
    ]

    @property
    def is_failing(self) -> bool:
        """Whether it cannot be read; a source that awaits trust or a sign-in has not failed."""
        return bool(self.error) and not (self.awaits_trust or self.awaits_sign_in)

    @property
    def state(self) -> str:
        """Its state in one to three words."""
        if self.awaits_trust:
            return "waiting for trust"
        if self.awaits_sign_in:
            return "waiting for sign-in"
        if self.error:
            return "failing"
        if self.is_starting:
            return "starting"
        if self.stale:
            return "stale"
        return "fresh" if self.seen else "not read yet"  # such as a server that was never asked


class Building(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A collection that is being built; progress counts items.

    It is built beside the active one. A first index is the active one itself.
    """

    collection: str
    done: int
    total: int


class UnusedIndex(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The index of an unused configuration or model; ``since`` is in Unix seconds."""

    collection: str
    points: Annotated[int, msgspec.Meta(description="The number of its vectors.")]
    since: float


# The upper bounds of the histogram of save durations, in seconds.
SAVE_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class SaveTimes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The durations of saves since the watch started, from the job to its announcement.

    Attributes:
        waiting: The age of the oldest pending save, in seconds; 0 without one.
        seconds: The total duration of all saves.
        durations: The number of items by duration: up to 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60 and
            300 seconds, and longer. Each item counts once.
    """

    waiting: float = 0.0
    seconds: float = 0.0
    durations: tuple[int, ...] = (0,) * (len(SAVE_BOUNDS) + 1)


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


class WatchStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The report of the process that scans the sources, on the status board.

    Attributes:
        at: When it reported, in Unix seconds.
        configuration: The hash of the active configuration; empty while unknown.
        collection: The active collection.
        error: Why it cannot proceed; empty if it can.
        configuration_error: What is wrong with the configuration files; empty if they are valid.
        sources: The state of every source, in the catalogue's order.
        former: Who may see the sources of the searched collection, by name, while that is of
            another configuration, in which a name may mean another source.
        building: The collection that is being built, if any.
        pending: How many items are pending or wait to be sent.
        saves: The durations of saves.
        is_late: Whether a large change, a changed configuration, or saves during an outage of a
            store have waited too long to be searchable.
        has_failed: Whether an item could not be indexed.
        unused: The indexes that are currently unused, and are removed after a while.
        problems: The first problems found in sources and items, per set of callers who see them.
        errors, warnings: How many problems there are, including unlisted ones.
        unlisted: How many problems of items are not listed.
        watching: The sources whose folders report changes.
        polling: The sources that are polled instead, each with the reason.
        notices: Notices about settings that have no effect until the user trusts the configuration.
    """

    at: float = 0.0
    configuration: str = ""
    collection: str = ""
    error: str = ""
    configuration_error: str = ""
    sources: list[SourceState] = []
    former: dict[str, tuple[str, ...]] = {}
    building: Building | None = None
    pending: int = 0
    saves: SaveTimes = SaveTimes()
    is_late: bool = False
    has_failed: bool = False
    unused: list[UnusedIndex] = []
    problems: list[Problem] = []
    errors: int = 0
    warnings: int = 0
    unlisted: int = 0
    watching: list[str] = []
    polling: dict[str, str] = {}
    notices: list[str] = []

    @classmethod
    def read(cls, reports: Mapping[str, Mapping[str, Any]]) -> "WatchStatus | None":
        """The watch's report on a status board; None if missing or from another release."""
        try:
            return msgspec.convert(reports[WATCH], cls)
        except (KeyError, msgspec.ValidationError):
            return None

    def inherited(self) -> "WatchStatus":
        """The report for a process that takes over and has not scanned any source yet."""
        sources = [msgspec.structs.replace(one, is_starting=not one.error) for one in self.sources]
        return msgspec.structs.replace(
            self, sources=sources, saves=SaveTimes(), is_late=False, has_failed=False
        )

    @property
    def searched(self) -> dict[str, tuple[str, ...]]:
        """Who may see the sources of the searched collection, by name, as far as known.

        If the collection is of another configuration and ``former`` is empty, these are the sources
        of the next configuration.
        """
        return self.former or {one.name: one.visible_to for one in self.sources}

    @property
    def first_items(self) -> int:
        """How many items a first index will have while it is built and already searched; else 0."""
        one = self.building
        is_first = one and one.done < one.total and self.collection in ("", one.collection)
        return one.total if one and is_first else 0


def watch_status(board: StatusBoard) -> WatchStatus | None:
    """The watch's last report; see ``WatchStatus.read``.

    Raises:
        StoreError: The board is unavailable.
    """
    return WatchStatus.read(board.reports())


def report_watch(board: StatusBoard, status: WatchStatus) -> None:
    """Report as the watch.

    Raises:
        StoreError: The board is unavailable.
    """
    board.report(WATCH, msgspec.to_builtins(status))


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
