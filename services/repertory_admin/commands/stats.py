"""``repertory stats``."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repertory.errors import StoreError
from repertory.settings import load
from repertory.sources.source import Severity
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.options import Flags, Output, OutputOption

if TYPE_CHECKING:
    from repertory.workspace import Pointer

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


@command(app, "stats", examples=("repertory stats", "repertory stats --output json"))
def stats(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """Show what is indexed here, how fresh it is, and what is wrong."""
    from repertory.compose import Repertory  # noqa: PLC0415 - --help must be instant

    directory = Path.cwd()
    with Repertory(load(flags, directory), directory) as repertory:
        pointer = repertory.stats()
        if pointer is None:
            raise StoreError("Nothing is indexed here yet; run `repertory index`.")
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
        "sources": terminal.plain(report.sources),
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
                ago(now - source.seen) if source.seen else "never",
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
            "indexed": ago(now - pointer.at),
            "stale": ", ".join(report.stale_sources) or "no source",
            "problems": problems + ("; see `repertory doctor`" if report.problems else ""),
            "model": report.model,
            "points": f"{report.points:,}",
            "collection": report.collection,
            "version": str(report.revision),
            "data": f"{terminal.short_path(str(data))}, {facts['dataBytes'] / 1e6:.1f} MB",
        }
    )


def ago(seconds: float) -> str:
    """A span of time in words, in its largest unit."""
    for length, unit in _UNITS:
        if (count := int(seconds // length)) >= 1:
            return f"{terminal.count(count, unit)} ago"
    return "just now"


def _size(folder: Path) -> int:
    """The bytes of all files in a folder."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size
        except OSError:  # another process has just removed it
            continue
    return total
