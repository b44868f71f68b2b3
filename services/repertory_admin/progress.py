"""Progress bars on a terminal that can redraw a line, unless ``--quiet`` was given."""

import itertools
import os
import sys
import threading
from typing import TYPE_CHECKING, Self

from repertory_admin import terminal

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TURN_S = 0.1


class Bars:
    """One bar for each stage, shown from its first step to the end, and a spinner before them."""

    def __init__(self) -> None:
        can_redraw = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = can_redraw and not terminal.is_quiet()
        self._lock = threading.Lock()  # stages report from several threads
        self._progress: RichProgress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._spinner: Spinner | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def wait(self) -> None:
        """Show a spinner until the first step or the end. Imports nothing slow."""
        if self._shown and self._spinner is None and self._progress is None:
            self._spinner = Spinner("Searching")

    def clear(self) -> None:
        """Remove everything from the terminal, so that lines can be written there."""
        with self._lock:
            self._end_spinner()
            if self._progress is not None:
                self._progress.stop()
                self._progress = None
                self._tasks.clear()

    def step(self, stage: str, done: int, total: int) -> None:
        """Show how much of a stage is done."""
        self._show(stage, done, total, f"{done:,} of {total:,}")

    def download(self, there: int, total: int) -> None:
        """Show how many bytes of the model are downloaded."""
        amount = f"{terminal.size(there)} of {terminal.size(total)}"
        self._show("Downloading the model", there, total, amount)

    def _show(self, stage: str, done: int, total: int, amount: str) -> None:
        if not self._shown:
            return
        with self._lock:
            if self._progress is None:
                self._end_spinner()
                self._progress = _started()
            if stage not in self._tasks:
                self._tasks[stage] = self._progress.add_task(stage, total=total, amount="")
            self._progress.update(self._tasks[stage], completed=done, total=total, amount=amount)

    def _end_spinner(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None


class Spinner:
    """A spinner with a word on stderr, drawn at once and then updated by its own thread."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._stopping = threading.Event()
        self._draw(SPINNER[0])
        self._thread = threading.Thread(target=self._turn, name="spinner", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Remove the spinner."""
        self._stopping.set()
        self._thread.join()
        self._write("\r\x1b[K")

    def _turn(self) -> None:
        for mark in itertools.cycle(SPINNER):
            if self._stopping.wait(TURN_S):
                return
            self._draw(mark)

    def _draw(self, mark: str) -> None:
        self._write(f"\r{mark} {self._word} …")

    def _write(self, text: str) -> None:
        print(text, end="", file=sys.stderr, flush=True)


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
