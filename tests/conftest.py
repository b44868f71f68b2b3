"""What tests of several folders share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.engines import shared_engines  # noqa: F401  # a fixture
from tests.support.qdrant import qdrant_url  # noqa: F401  # a fixture
from tests.support.redis_server import RedisProcess

# No test asserts a time, and neither does a law. Everything else is as it was chosen.
settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")

# What a shell starts in the background ignores Ctrl-C, and so would the programs that we test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run one test more at a time than there are processors: many wait most of the time."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home directory that does not exist yet, without a configuration of the user."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    return home


@pytest.fixture(scope="session")
def redis_process() -> Iterator[RedisProcess]:
    """One Redis for all tests that leave it running."""
    with RedisProcess() as server:
        yield server


@pytest.fixture
def redis_server(redis_process: RedisProcess) -> RedisProcess:
    """A Redis that runs and is empty."""
    redis_process.flush()
    return redis_process
