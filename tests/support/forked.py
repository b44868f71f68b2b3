"""Start commands quickly by forking a process that has already imported their modules.

The fork server of ``multiprocessing`` imports the modules once; each command is a fork of it. Only
modules that start no thread on import may be listed here.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from tempfile import TemporaryDirectory

_IMPORTED = (
    "httpx",
    "jsonschema",
    "numpy",
    "onnxruntime",
    "qdrant_edge",
    "repertory.compose",
    "repertory.coordination.redis_server",
    "repertory.index.qdrant",
    "repertory.local.one_shot",
    "repertory.local.update",
    "repertory_admin.cli",
    "repertory_admin.commands.doctor",
    "repertory_admin.commands.index",
    "repertory_admin.commands.search",
    "repertory_admin.commands.serve",
    "repertory_embedded.server",
    "repertory_query.mcp.server",
    "repertory_query.server.run",
    "repertory_watch.service",
    "repertory_worker.process",
    "rich.console",
    "rich.table",
    "tests.support.forked",
    "tokenizers",
)


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    return context


_CONTEXT = _context()


class Forked:
    """A running command, with the interface of ``subprocess.Popen``.

    Args:
        arguments: The arguments of ``repertory``.
        folder: The working directory.
        environment: The environment variables.
        out, err: The files to which its output and its errors are appended.
        is_leader: Whether the process starts a new session.

    Attributes:
        pid: The process id.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        out: Path,
        err: Path,
        is_leader: bool = False,
    ) -> None:
        self._arguments = list(arguments)
        given = (self._arguments, folder, dict(environment), out, err, is_leader)
        self._process = _CONTEXT.Process(target=_command, args=given)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """The exit code; None while the process runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the process to end; returns the exit code.

        Raises:
            TimeoutExpired: The process was still running after ``timeout`` seconds.
        """
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise TimeoutExpired(self._arguments, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it may have just ended
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM to the process, unless it has ended."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the process, unless it has ended."""
        self.send_signal(signal.SIGKILL)


def run(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float
) -> CompletedProcess[str]:
    """Run a ``repertory`` command without input, and return its exit code and output.

    Raises:
        TimeoutExpired: The command did not end within ``timeout`` seconds and was killed.
    """
    with TemporaryDirectory(prefix="repertory-forked-") as written:
        out, err = Path(written, "out"), Path(written, "err")
        process = Forked(arguments, folder, environment, out=out, err=err)
        try:
            code = process.wait(timeout)
        except TimeoutExpired:
            process.kill()
            process.wait()
            raise
        texts = (file.read_bytes().decode() for file in (out, err))
        return CompletedProcess(list(arguments), code, *texts)


def _command(
    arguments: list[str],
    folder: Path,
    environment: dict[str, str],
    out: Path,
    err: Path,
    is_leader: bool,
) -> None:
    """Turn this fork into the command: set its session, streams, folder, and environment."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # it is ignored if the tests run under ``nohup``
    if is_leader:
        os.setsid()
    for number, file in ((1, out), (2, err)):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    warnings.simplefilter("error", ResourceWarning)
    sys.argv = ["repertory", *arguments]
    from repertory_admin.__main__ import main  # noqa: PLC0415 - needed only in the fork

    main()
