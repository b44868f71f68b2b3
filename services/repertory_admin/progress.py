"""Progress bars on stderr, when it is a terminal and ``--quiet`` was not given."""

import sys
import threading
from typing import TYPE_CHECKING, Self

from repertory_admin import terminal

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Bars:
    """One bar for each stage, shown from its first step to the end."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty() and not terminal.is_quiet()
        self._lock = threading.Lock()  # stages step from several threads
        self._progress: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def step(self, stage: str, done: int, total: int) -> None:
        """Show how much of a stage is done."""
        self._show(stage, done, total, f"{done:,} of {total:,}")

    def download(self, there: int, total: int) -> None:
        """Show how many bytes of the model are downloaded."""
        amount = f"{there / 1e6:.1f} of {total / 1e6:.1f} MB"
        self._show("Downloading the model", there, total, amount)

    def _show(self, stage: str, done: int, total: int, amount: str) -> None:
        if not self._shown:
            return
        with self._lock:
            if self._progress is None:
                self._progress = _started()
            if stage not in self._tasks:
                self._tasks[stage] = self._progress.add_task(stage, total=total, amount="")
            self._progress.update(self._tasks[stage], completed=done, total=total, amount=amount)


def _started() -> "RichProgress":
    from rich.console import Console  # noqa: PLC0415 - a tenth of a second
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
    )
    progress.start()
    return progress
