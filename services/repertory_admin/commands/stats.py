"""``repertory stats``."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repertory.errors import NothingIndexedError
from repertory.plain import plain
from repertory.settings import Settings, load
from repertory.sources.source import Severity
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.options import ASKING, STORE, Flags, Output, OutputOption

if TYPE_CHECKING:
    from repertory.workspace import Pointer


@command(
    app,
    "stats",
    settings=(*STORE, *ASKING),
    examples=("repertory stats", "repertory stats --output json"),
)
def stats(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """Show what is indexed here, how fresh it is, and what is wrong.

    A server that is configured, or runs for this directory, says it of itself.
    """
    from repertory import running  # noqa: PLC0415 - --help must be instant

    directory = Path.cwd()
    settings = load(flags, directory)
    if client := running.client(settings, directory):
        found = client.stats()
        if output is Output.JSON:
            terminal.show_json(found)
        else:
            from repertory_admin import server_stats  # noqa: PLC0415 - likewise

            server_stats.show(client.url, found)
    else:
        _stats_here(settings, directory, output)


def _stats_here(settings: Settings, directory: Path, output: Output) -> None:
    from repertory.one_shot import Repertory  # noqa: PLC0415 - not where a server is asked

    with Repertory(settings, directory) as repertory:
        pointer = repertory.stats()
        if pointer is None:
            raise NothingIndexedError("Nothing is indexed here yet; run `repertory index`.")
        kinds = Counter(entry.kind.value for entry in repertory.entries())
        size = _size(repertory.settings.data_dir)
    facts = _facts(pointer, dict(sorted(kinds.items())), size)
    if output is Output.JSON:
        terminal.show_json({**facts, "dataDirectory": str(repertory.settings.data_dir)})
    else:
        _show(pointer, facts, repertory.settings.data_dir)


def _facts(pointer: "Pointer", kinds: dict[str, int], size: int) -> dict[str, Any]:
    report = pointer.report
    severities = Counter(problem.severity for problem in report.problems)
    return {
        "items": report.items,
        "kinds": kinds,
        "sources": plain(report.sources),
        "staleSources": list(report.stale_sources),
        "errors": severities[Severity.ERROR],
        "warnings": severities[Severity.WARNING],
        "indexedAt": pointer.at,
        "configuration": pointer.configuration,
        "collection": report.collection,
        "model": report.model,
        "points": report.points,
        "indexVersion": report.revision,
        "dataBytes": size,
    }


def _show(pointer: "Pointer", facts: dict[str, Any], data: Path) -> None:
    report, now = pointer.report, time.time()
    terminal.show_table(
        ("Source", "Type", "Items", "Stale", "Last seen"),
        [
            (
                source.name,
                source.type,
                f"{source.items:,}",
                f"{source.stale:,}" if source.stale else "",
                terminal.ago(now - source.seen) if source.seen else "never",
            )
            for source in report.sources
        ],
        right=("Items", "Stale"),
        styles={"Stale": lambda _: "yellow"},
    )
    kinds = ", ".join(terminal.count(count, kind) for kind, count in facts["kinds"].items())
    problems = ", ".join(terminal.count(facts[f"{noun}s"], noun) for noun in ("error", "warning"))
    terminal.say()
    terminal.show_facts(
        {
            "items": f"{report.items:,}" + (f" ({kinds})" if kinds else ""),
            "indexed": terminal.ago(now - pointer.at),
            "stale": ", ".join(report.stale_sources) or "no source",
            "problems": problems + ("; see `repertory doctor`" if report.problems else ""),
            "model": report.model,
            "points": f"{report.points:,}",
            "collection": report.collection,
            "version": str(report.revision),
            "data": f"{terminal.short_path(str(data))}, {facts['dataBytes'] / 1e6:.1f} MB",
        }
    )


def _size(folder: Path) -> int:
    """The bytes that all files in a folder take; those of the vectors have holes."""
    total = 0
    for path in folder.rglob("*"):
        try:
            status = path.lstat()
        except OSError:  # another process has just removed it
            continue
        blocks = getattr(status, "st_blocks", None)  # of 512 bytes; Windows tells none
        total += status.st_size if blocks is None else 512 * blocks
    return total
