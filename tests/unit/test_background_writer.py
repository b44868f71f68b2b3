"""The background writer: in order, bounded, and on one thread."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest

from repertory.system.background_writer import BackgroundWriter


class Disk:
    """Records writes, and may hang or fail."""

    def __init__(self) -> None:
        self.kept: list[tuple[list[int], int]] = []
        self.entered = threading.Event()
        self.works = threading.Event()
        self.fails = False

    def write(self, things: list[int], lost: int) -> tuple[int, str]:
        """Record the things, and how many were lost before them."""
        self.entered.set()
        assert self.works.wait(60)
        if self.fails:
            raise ValueError("broken")
        self.kept.append((things, lost))
        return len(things), ""


@pytest.fixture
def disk() -> Disk:
    """A disk that works."""
    disk = Disk()
    disk.works.set()
    return disk


def test_a_flush_that_times_out_ends_no_other_flush(disk: Disk) -> None:
    """Things added while both waited are written at once for the flush that still waits."""
    disk.works.clear()
    writer = BackgroundWriter("test", Path("file"), disk.write, 10, 600.0)
    writer.add(1)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(writer.flush, 30)
        assert disk.entered.wait(60)
        assert not writer.flush(0.01)
        writer.add(2)
        disk.works.set()
        assert waiting.result()
    assert disk.kept == [([1], 0), ([2], 0)]


def test_without_a_thread_things_wait_for_the_next_attempt(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If no thread can start, no request fails, and only things beyond the bound are lost."""
    writer = BackgroundWriter("test", Path("file"), disk.write, 2, 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("no new thread")))
        for number in range(3):
            writer.add(number)
        assert not writer.flush(0.01)
        assert writer.trouble == "no new thread"
    assert len(caplog.messages) == 1
    assert writer.flush()
    assert disk.kept == [([0, 1], 1)]


def test_a_failure_ends_neither_the_thread_nor_the_process(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    """The next successful write has the number of lost things."""
    writer = BackgroundWriter("test", Path("file"), disk.write, 10, 0.0)
    disk.fails = True
    for thing in (1, 2):
        writer.add(thing)
        assert not writer.flush()
    assert writer.trouble == "ValueError: broken"
    with caplog.at_level(logging.WARNING):
        assert [one.msg for one in caplog.records].count("test_not_written") == 1
    disk.fails = False
    writer.add(3)
    assert writer.flush()
    assert disk.kept == [([3], 2)]
