"""Fixtures and settings that tests of several folders share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.engines import shared_engines  # noqa: F401  # a fixture
from tests.support.qdrant import qdrant_url  # noqa: F401  # a fixture
from tests.support.redis_server import RedisProcess

# Tests must not depend on the speed of the machine, so Hypothesis gets no deadline. All other
# settings of the current profile stay in effect.
settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")

# Discovery must not find the skills and configurations of the user who runs the tests.
for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
    os.environ.pop(name, None)

# A shell makes background jobs ignore Ctrl-C, and the tested programs would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use two workers more than there are processors, since many tests mostly wait."""
    return (os.cpu_count() or 1) + 2


@pytest.fixture
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home directory that does not exist yet, so that the user's configuration is ignored."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    return home


@pytest.fixture(scope="session")
def redis_process() -> Iterator[RedisProcess]:
    """A Redis server shared by all tests that do not stop it."""
    with RedisProcess() as server:
        yield server


@pytest.fixture
def redis_server(redis_process: RedisProcess) -> RedisProcess:
    """A running Redis server without data."""
    redis_process.flush()
    return redis_process
