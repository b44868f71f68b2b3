"""Processes that begin with the command line's modules imported, which saves most of their start.

A server of ``multiprocessing`` imports the modules once; each command is a fork of it. What starts
no thread when it is imported may be named here.
"""

import multiprocessing
import os
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
    "repertory.one_shot",
    "repertory.update",
    "repertory_admin.cli",
    "repertory_admin.commands.doctor",
    "repertory_admin.commands.index",
    "repertory_admin.commands.search",
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


def run(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float
) -> CompletedProcess[str]:
    """Run a command of the command line without input, and return what it wrote.

    Raises:
        TimeoutExpired: It was still running after so many seconds; it has been killed.
    """
    with TemporaryDirectory(prefix="repertory-forked-") as written:
        out, err = Path(written, "out"), Path(written, "err")
        given = (list(arguments), folder, dict(environment), out, err)
        process = _CONTEXT.Process(target=_command, args=given)
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutExpired(given[0], timeout)
        texts = (file.read_bytes().decode() for file in (out, err))
        return CompletedProcess(given[0], process.exitcode, *texts)


def _command(
    arguments: list[str], folder: Path, environment: dict[str, str], out: Path, err: Path
) -> None:
    """Become the command."""
    for number, file in ((1, out), (2, err)):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    warnings.simplefilter("error", ResourceWarning)
    sys.argv = ["repertory", *arguments]
    from repertory_admin.__main__ import main  # noqa: PLC0415 - in this process alone

    main()
