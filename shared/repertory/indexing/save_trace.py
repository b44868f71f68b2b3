"""The trace of a save: the scans that found a change, and the jobs sent for it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from repertory.indexing.job import Job
from repertory.indexing.scan import SourceResult
from repertory.telemetry import spans


class SaveTrace:
    """Collects the scans since the last jobs were sent. Scans without a change are not traced."""

    def __init__(self) -> None:
        self._scans: dict[str, tuple[SourceResult, float]] = {}  # each with its end time, by source
        self._parent = ""  # the parent span of jobs that are sent later for the same change

    def scanned(self, result: SourceResult) -> None:
        """Record a scan that has just ended."""
        if spans.are_on():
            self._scans[result.source.name] = result, time.time()

    @contextmanager
    def sending(self, items: int, removed: int) -> Iterator[None]:
        """A span around sending jobs, with the scans that led to them as its children."""
        if not spans.are_on():
            yield
            return
        scans = list(self._scans.values())
        self._scans.clear()
        began = min((scan.at for scan, _ in scans), default=None)
        counts = {"repertory.items": items, "repertory.removed": removed}
        parent = {spans.PARENT: self._parent} if self._parent and not scans else None
        with spans.span("save", counts, parent=parent, began=began):
            self._parent = spans.current()
            for scan, ended in scans:
                spans.past("scan", {"repertory.source": scan.source.name}, scan.at, ended)
            yield

    def compared(self) -> None:
        """Forget scans that led to no jobs."""
        self._scans.clear()


def processing(jobs: Sequence[Job], parents: Sequence[str]) -> AbstractContextManager[spans.Span]:
    """The span of jobs that a worker does together.

    Args:
        jobs: The jobs.
        parents: The ``traceparent`` of each job's message; empty if missing. The span belongs to
            the trace of the first one and links to all of them.
    """
    attributes = {
        "repertory.jobs": len(jobs),
        "repertory.items": sum(len(job.items) + len(job.removed) for job in jobs),
    }
    known = [parent for parent in parents if parent]
    return spans.span(
        "process jobs",
        attributes,
        kind=spans.Kind.CONSUMER,
        parent={spans.PARENT: known[0]} if known else None,
        links=known,
    )
