"""Runs a download from the hub in a separate process.

A server would otherwise keep the hub's client and its imports in memory: 17 MB for one download.
"""

import subprocess
import threading
from pathlib import Path
from subprocess import DEVNULL, PIPE

import msgspec

from repertory.embedding.model_files import Format
from repertory.errors import ModelError, WeightsUnavailableError
from repertory.system import python_process
from repertory.system.progress import Download

_running: set[subprocess.Popen[bytes]] = set()
_ending = threading.Event()
_lock = threading.Lock()  # guards _running and _ending


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the download process's output.

    Attributes:
        done, total: The bytes received so far, and the total.
        error: Why the download failed; empty if it did not.
        is_refused: True if no engine can use the model, false if the hub did not provide it.
    """

    done: int = 0
    total: int = 0
    error: str = ""
    is_refused: bool = False


def download(repository: str, form: Format, folder: Path, progress: Download | None = None) -> None:
    """Download a model; see ``hub.fetch``.

    Raises:
        WeightsUnavailableError: The hub did not provide the model.
        ModelError: No engine of this format can use the model, or this process is ending.
    """
    try:
        _download([repository, form, str(folder)], progress)
    # The process cannot be started, or its output is not valid.
    except (OSError, msgspec.DecodeError, WeightsUnavailableError) as error:
        if _ending.is_set():  # the hub is not to blame
            raise ModelError(f"{repository} is not downloaded: this process ends.") from error
        if isinstance(error, WeightsUnavailableError):
            raise
        raise WeightsUnavailableError(f"{repository}: the download failed ({error})") from error


def end() -> None:
    """Kill running downloads and refuse new ones, so that no thread delays the exit by waiting."""
    with _lock:
        _ending.set()
        for process in _running:
            process.kill()


def _started(arguments: list[str]) -> subprocess.Popen[bytes]:
    command = python_process.command("repertory.embedding.hub", *arguments)
    with _lock:
        if _ending.is_set():
            raise WeightsUnavailableError("this process ends")
        process = subprocess.Popen(  # noqa: S603 - our own program, without a shell
            command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
        )
        _running.add(process)
        return process


def _download(arguments: list[str], progress: Download | None) -> None:
    with _started(arguments) as process:
        try:
            assert process.stdout
            for line in process.stdout:
                report = msgspec.json.decode(line, type=Report)
                if report.is_refused:
                    raise ModelError(report.error)
                if report.error:
                    raise WeightsUnavailableError(report.error)
                if progress:
                    progress(report.done, report.total)
        except BaseException:
            process.kill()
            raise
        finally:
            with _lock:
                _running.discard(process)
    if process.returncode:
        raise WeightsUnavailableError(
            f"{arguments[0]}: the download ended early (exit status {process.returncode})"
        )
