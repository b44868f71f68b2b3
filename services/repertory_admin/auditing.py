"""Audit log entries for administrative commands."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from repertory.audit import Audit, user
from repertory.errors import UsageError
from repertory.settings import Settings
from repertory_admin import terminal


@contextmanager
def audited(
    settings: Settings, directory: Path, action: str, what: Iterable[object]
) -> Iterator[None]:
    """Record an action of a command and its outcome; warn if the log cannot be written."""
    audit, began, outcome = Audit(settings, directory), time.perf_counter(), "failed"
    try:
        yield
        outcome = "ok"
    except UsageError:
        outcome = "refused"
        raise
    finally:
        audit.record(
            action,
            user(),
            "cli",
            outcome=outcome,
            what=map(str, what),
            seconds=time.perf_counter() - began,
        )
        if not audit.file.flush():
            reason = audit.file.trouble or "the disk does not answer"
            terminal.warn(f"The audit log {audit.file.path} cannot be written: {reason}.")
