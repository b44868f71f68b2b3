"""Shows the insights into the usage of the catalogue."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from repertory.text import ago, counted
from repertory_admin import terminal

if TYPE_CHECKING:
    from repertory.usage.wire import Insights, ItemFinding, SearchFinding

MAX_SHOWN = 10  # of each list; the JSON has more


def show(found: "Insights") -> None:
    """Show the figures, and each list of findings with advice."""
    if not found.since:
        terminal.show_text(
            "Nothing is recorded: insights.record is off."
            if found.recording == "off"
            else "Nothing is recorded yet. Servers record the searches that they answer: "
            "`repertory serve`, `repertory mcp` and a team's server."
        )
    else:
        _show_figures(found)
    _show_searches(found, "unanswered", "Searches that found nothing", found.unanswered)
    _show_searches(found, "unused", "Searches whose results were not used", found.unused)
    _show_items(found, "neverFound", "Items that no search found", found.never_found)
    _show_items(found, "neverUsed", "Items that were found and not used", found.never_used)
    _show_items(found, "alike", "Items that are hard to tell apart", found.alike)
    _show_items(found, "shadowed", "Shadowed skills", found.shadowed)
    if found.stale:
        _begin(found, "stale", "Sources that are not up to date", found.stale)
        for source in found.stale[:MAX_SHOWN]:
            terminal.show_text(f"{source.source}: {source.state}. {source.advice}", indent=2)
    _show_searches(found, "slow", "Slow searches", found.slow)


def _show_figures(found: "Insights") -> None:
    facts = {
        "since": ago(time.time() - found.since),
        "searches": f"{found.searches:,} of {counted(found.callers, 'caller')}",
        "found nothing": f"{found.without_results:,}",
        "results not used": f"{found.without_use:,}",
        "uses": f"{found.uses:,}",
        "duration": f"{found.median_ms:,.0f} ms; 95 % took at most {found.slow_ms:,.0f} ms",
        "not recorded": counted(found.lost, "event") if found.lost else "",
        "queries": "recorded as digests; REPERTORY_INSIGHTS_RECORD=plain records their text"
        if found.recording == "hashed"
        else "",
    }
    terminal.show_facts(facts)


def _show_searches(
    found: "Insights", name: str, title: str, searches: "Sequence[SearchFinding]"
) -> None:
    if not searches:
        return
    _begin(found, name, title, searches)
    for one in searches[:MAX_SHOWN]:
        queries = ", ".join(f"“{query}”" for query in one.queries) or f"query {one.digest}"
        times = "once" if one.searches == 1 else f"{one.searches:,} times"
        more = f", {one.ms:,.0f} ms" if name == "slow" else ""
        terminal.show_text(f"{queries} ({times}, {counted(one.callers, 'caller')}{more})", indent=2)
        terminal.show_text(_advice(one.advice, one.items), indent=4)


def _show_items(found: "Insights", name: str, title: str, items: "Sequence[ItemFinding]") -> None:
    if not items:
        return
    _begin(found, name, title, items)
    by_advice: dict[str, list[str]] = {}
    for one in items[:MAX_SHOWN]:
        times = f" (found {one.found:,} times)" if name == "neverUsed" else ""
        by_advice.setdefault(one.advice, []).append(", ".join(one.items) + times)
    for advice, ids in by_advice.items():
        for line in ids:
            terminal.show_text(line, indent=2)
        terminal.show_text(advice, indent=4)


def _begin(found: "Insights", name: str, title: str, shown: Sequence[object]) -> None:
    total = found.totals.get(name, len(shown))
    of = f", the first {MAX_SHOWN} of {total:,}" if total > MAX_SHOWN else f" ({total:,})"
    terminal.say()
    terminal.say(f"{title}{of}:")


def _advice(advice: str, items: Sequence[str]) -> str:
    others = [item for item in items if item not in advice]
    return f"{advice} See {', '.join(others)}." if others else advice
