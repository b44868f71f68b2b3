"""What a server says of itself, shown."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from repertory_admin import terminal
from repertory_admin.reports import MOST_PROBLEMS, show_problems

if TYPE_CHECKING:
    from repertory.server_state import SourceState, Stats, Worker


def show(url: str, stats: "Stats") -> None:
    """Show the sources with how fresh they are, the index, the workers, and what is wrong."""
    if stats.sources:
        _show_sources(stats.sources)
        terminal.say()
    waiting = {"saves": stats.queue.saves, "builds": stats.queue.builds}
    building = stats.building
    facts = {
        "server": url,
        "items": f"{stats.items:,}",
        "stale": ", ".join(one.name for one in stats.sources if one.stale) or "no source",
        "building": building
        and f"{building.collection}, {building.done:,} of {building.total:,} items",
        "waiting": ", ".join(f"{_number(count)} {name}" for name, count in waiting.items()),
        "failed": f"{_number(stats.queue.failed)} jobs"
        + ("; see `repertory queue list`" if stats.queue.failed else ""),
        "model": stats.model,
        "collection": stats.collection,
        "version": str(stats.index_version),
        **{f"no {part}": why for part, why in stats.missing.items()},
    }
    terminal.show_facts({name: text for name, text in facts.items() if text})
    if stats.workers:
        terminal.say()
        _show_workers(stats.workers)
    if stats.troubles:
        terminal.say()
        for trouble in stats.troubles:
            terminal.tell(trouble)
    if stats.faults:
        terminal.say()
        show_problems(stats.faults, MOST_PROBLEMS)


def doing(busy: Mapping[str, Any]) -> str:
    """What a worker is at, in a few words."""
    parts = [f"{name} {value}" for name, value in busy.items() if name not in ("worker", "since")]
    return ", ".join(parts) or "nothing"


def _show_sources(sources: "Sequence[SourceState]") -> None:
    now = time.time()
    terminal.show_table(
        ("Source", "Type", "Items", "Stale", "Last seen", "Error"),
        [
            (
                source.name,
                source.type,
                f"{source.items:,}",
                f"{source.stale:,}" if source.stale else "",
                terminal.ago(now - source.seen) if source.seen else "never",
                source.error,
            )
            for source in sources
        ],
        right=("Items", "Stale"),
        styles={"Stale": lambda _: "yellow", "Error": lambda _: "red"},
    )


def _show_workers(workers: "Sequence[Worker]") -> None:
    now = time.time()
    terminal.show_table(
        ("Worker", "Model", "Device", "Jobs", "Heard of", "Does"),
        [
            (
                worker.worker,
                worker.model,
                worker.device,
                f"{worker.jobs:,}",
                terminal.ago(now - worker.at),
                doing(worker.busy),
            )
            for worker in workers
        ],
        right=("Jobs",),
    )


def _number(count: int | None) -> str:
    return "an unknown number of" if count is None else f"{count:,}"
