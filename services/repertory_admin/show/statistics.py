"""Shows statistics: the same for a server and for the index of a directory."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from repertory.stats import Stats, Verification, Watch, Worker
from repertory.text import ago, counted
from repertory_admin import terminal
from repertory_admin.show.runs import MAX_PROBLEMS, show_problems, show_sources


def show(stats: Stats, place: Mapping[str, str], *, internals: bool) -> None:
    """Show the sources with their freshness, the index, the workers and the problems.

    Args:
        stats: The statistics.
        place: Where the index is, as facts.
        internals: Whether to show the names and numbers of its storage.
    """
    if stats.sources:
        now = time.time()
        show_sources(
            stats.sources,
            "Last read",
            lambda one: ago(now - one.seen) if one.seen else "unknown" if one.items else "never",
        )
        terminal.say()
        _show_polled(stats.watch)
    facts = {**place, **_facts(stats), **(_storage(stats) if internals else {})}
    terminal.show_facts(facts)
    if stats.workers:
        terminal.say()
        _show_workers(stats.workers)
    waiting = dict.fromkeys(one.error for one in stats.sources if one.awaits_trust and one.error)
    for advice in (list(waiting), stats.troubles):
        if advice:
            terminal.say()
        for sentence in advice:
            terminal.show_text(sentence)
    if stats.faults:
        terminal.say()
        beside = stats.errors + stats.warnings - len(stats.problems)
        show_problems(stats.faults, MAX_PROBLEMS, beside=max(beside, 0))


def _facts(stats: Stats) -> dict[str, str]:
    """The state of the index in words; facts that do not apply are empty."""
    kinds = ", ".join(counted(count, kind) for kind, count in stats.kinds.items())
    process, building = stats.process, stats.building
    unused = sum(one.points for one in stats.unused)
    return {
        "items": f"{stats.items:,}" + (f" ({kinds})" if kinds else ""),
        "scanned": ago(time.time() - stats.watch.at) if stats.watch else "",
        **_watches(stats.watch),
        "verified": _verified(stats.verification),
        "answered by": f"process {process.number} of {process.of}" if process else "",
        "building": f"{building.done:,} of {building.total:,} items" if building else "",
        "unused": f"{unused:,} vectors of former configurations; see `repertory doctor`"
        if stats.unused
        else "",
        **_jobs(stats),
        "problems": _problems(stats),
        "model": stats.model or "none",
        **{f"no {part}": why for part, why in stats.missing.items()},
    }


def _storage(stats: Stats) -> dict[str, str]:
    """The names and numbers of the storage."""
    return {
        "vectors": "unknown" if stats.points is None else f"{stats.points:,}",
        "collection": stats.collection,
        "version": str(stats.index_version),
    }


def _jobs(stats: Stats) -> dict[str, str]:
    """The pending and the failed jobs; empty for callers who may not see them."""
    if stats.watch and stats.watch.pending is None:
        return {}
    queue = stats.queue
    pending = (
        (stats.watch.pending if stats.watch else 0, "item", "items"),
        (queue.saves, "save waiting", "saves waiting"),
        (queue.builds, "build waiting", "builds waiting"),
        (queue.taken, "job with a worker", "jobs with workers"),
    )
    failed = _counted(queue.failed, "job", "jobs")
    return {
        "pending": ", ".join(_counted(*one) for one in pending if one[0] != 0),
        "failed": f"{failed}; see `repertory queue list`" if queue.failed != 0 else "",
    }


def _problems(stats: Stats) -> str:
    """How many problems there are, by their severity."""
    withheld = sum(one.quarantined for one in stats.sources)
    counts = {
        "error": stats.errors,
        "warning": max(stats.warnings - withheld, 0),  # withheld items have one, too
        "item": withheld,
    }
    problems = ", ".join(counted(count, noun) for noun, count in counts.items() if count)
    problems += " in quarantine" if withheld else ""
    return f"{problems}; see `repertory doctor`" if problems else "none"


def _verified(verification: Verification | None) -> str:
    """When the index was last compared with the collection, and how many items were repaired."""
    if verification is None or not (verification.at or verification.repaired):
        return ""
    when = ago(time.time() - verification.at) if verification.at else "not yet"
    repaired = verification.repaired
    return when + (f"; {counted(repaired, 'item')} repaired" if repaired else "")


def doing(busy: Mapping[str, Any]) -> str:
    """A worker's current job in a few words."""
    parts = [f"{name} {value}" for name, value in busy.items() if name not in ("worker", "since")]
    return ", ".join(parts) or "nothing"


def _show_polled(watch: Watch | None) -> None:
    """Say which sources are polled, and why."""
    polled: defaultdict[str, list[str]] = defaultdict(list)
    for name, why in (watch.polling if watch else {}).items():
        polled[why].append(name)
    for why, names in polled.items():
        terminal.show_text(f"{', '.join(names)}: scanned at intervals, because {why}.")
    if polled:
        terminal.say()


def _watches(watch: Watch | None) -> dict[str, str]:
    """Who watches for a team, and who would take over."""
    now = time.time()
    holder = watch.holder if watch else None
    waiting = watch.waiting if watch else []
    return {
        "watched by": f"{holder}; began {ago(now - holder.since)}" if holder else "",
        "would take over": "; ".join(map(str, waiting)),
    }


def _show_workers(workers: Sequence[Worker]) -> None:
    now = time.time()
    terminal.show_table(
        ("Worker", "Model", "Device", "Jobs", "Last report", "Does"),
        [
            (
                worker.worker,
                worker.model,
                worker.device,
                f"{worker.jobs:,}",
                ago(now - worker.at),
                "does not report" if worker.is_silent else doing(worker.busy),
            )
            for worker in workers
        ],
        right=("Jobs",),
    )


def _counted(count: int | None, one: str, many: str) -> str:
    return f"an unknown number of {many}" if count is None else counted(count, one, many)
