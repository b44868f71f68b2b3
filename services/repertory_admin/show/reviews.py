"""Shows items that wait for approval, and the history of an item."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from repertory.text import ago
from repertory_admin import terminal
from repertory_admin.text import safe

if TYPE_CHECKING:
    from repertory.review.wire import Event, Review


def show_review(one: "Review") -> None:
    """Show one item: its state, what is suspicious, and its change."""
    when = ago(time.time() - one.at)
    terminal.say(safe(f"{one.as_shown}  {one.state}, {when}"))
    for finding in one.findings:
        terminal.say(safe(f"  {finding.rule}: {finding.message}"))
        if finding.passage:
            terminal.say(safe(f"    “{finding.passage}”"))
    _show_diff(one.diff)
    terminal.say()


def show_history(events: "Iterable[Event]") -> None:
    """Show what happened to an item."""
    for event in events:
        by = f" by {event.who}" if event.who else ""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(event.at))
        terminal.say(safe(f"{when}  {event.what}{by} ({event.source})"))
        _show_diff(event.diff)


def _show_diff(lines: Iterable[str]) -> None:
    for line in lines:
        terminal.say(safe(f"  {line}"))
