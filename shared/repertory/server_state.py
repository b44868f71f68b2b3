"""What a running server says of itself, as ``Client`` reads it."""

from typing import Any

import msgspec

from repertory.sources.source import Problem, Severity


class SourceState(msgspec.Struct, frozen=True, kw_only=True):
    """A source as it was last read.

    Attributes:
        items: How many of its items are indexed.
        stale: How many of them are kept though they could not be read.
        error: Why it could not be read; empty when it could.
        seen: When it was last read, in seconds since the epoch; 0 for never.
    """

    name: str
    type: str
    location: str
    items: int
    stale: int
    error: str
    seen: float


class Building(msgspec.Struct, frozen=True, kw_only=True):
    """A collection that is being built beside the one in force, in items."""

    collection: str
    done: int
    total: int


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs there are; None where the queue cannot be asked."""

    saves: int | None
    builds: int | None
    failed: int | None


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker process last said of itself, ``at`` in seconds since the epoch.

    Attributes:
        busy: What it is doing, as plain data; empty when it waits.
        jobs, items: How many it has done.
    """

    worker: str
    at: float
    model: str = ""
    device: str = ""
    queues: list[str] = []
    busy: dict[str, Any] = {}
    jobs: int = 0
    items: int = 0


class Stats(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a server is.

    Attributes:
        missing: What is missing for a whole answer, by part, in words.
        calls_allowed: Whether tools may be called through it.
        building: What is being built, if anything is.
        watch: What the watch service last said of itself; None when nothing was heard of it.
    """

    index_version: int
    configuration: str
    collection: str
    model: str
    items: int
    missing: dict[str, str]
    calls_allowed: bool = False
    sources: list[SourceState]
    building: Building | None
    queue: Lengths
    workers: list[Worker]
    problems: list[Problem]
    watch: dict[str, Any] | None
    counters: dict[str, float]

    @property
    def troubles(self) -> list[str]:
        """What is wrong with the server itself, in words: with no file, item or MCP server."""
        return [problem.message for problem in self.problems if _is_trouble(problem)]

    @property
    def faults(self) -> list[Problem]:
        """What is wrong with what is indexed."""
        return [problem for problem in self.problems if not _is_trouble(problem)]


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was given up, after so many attempts; ``at`` is in seconds since the epoch."""

    id: str
    items: list[str]
    error: str
    at: float
    attempts: int


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """What waits, by lane; what each worker that is busy does; and what was given up."""

    waiting: dict[str, int]
    running: list[dict[str, Any]]
    failed: list[Failed]


class Rebuild(msgspec.Struct, frozen=True, kw_only=True):
    """What was begun: a generation of a configuration's collection."""

    configuration: str
    generation: int


def _is_trouble(problem: Problem) -> bool:
    return problem.severity == Severity.ERROR and not (problem.path or problem.item)
