"""Progress bars on stderr, when it is a terminal; otherwise nothing."""

import sys
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class Bars:
    """One bar for each stage, shown from its first step to the end."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
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
        if not self._shown:
            return
        with self._lock:
            progress, task = self._task(stage, total)
            amount = f"{done:,} of {total:,}"
            progress.update(task, completed=done, total=total, amount=amount)

    def download(self, there: int, total: int) -> None:
        """Show how much of the model is downloaded."""
        if not self._shown:
            return
        with self._lock:
            progress, task = self._task("Downloading the model", total)
            amount = f"{there / 1e6:.1f} of {total / 1e6:.1f} MB"
            progress.update(task, completed=there, total=total, amount=amount)

    def _task(self, stage: str, total: int) -> "tuple[RichProgress, TaskID]":
        if self._progress is None:
            self._progress = _started()
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total, amount="")
        return self._progress, self._tasks[stage]


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
