"""Calls the git program so that untrusted URLs and repositories cannot misuse it."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from repertory.errors import SourceError
from repertory.sources.fetched.urls import masked
from repertory.system.files import size_on_disk
from repertory.text import cut, one_line

TIMEOUT_S = 600.0  # per call
REMEMBERED_S = 60  # git caches typed passwords this long, so that it asks once for all calls
STALL_TIMEOUT_S = 60  # at less than a kilobyte per second, over HTTP
MAX_REPOSITORY_SIZE = 512 * 2**20  # bytes
MAX_OUTPUT_SIZE = 320 * 2**20  # bytes
MAX_MESSAGE_LENGTH = 300  # characters
RESERVED = 4_096  # bytes on the disk for git's error messages, in case the disk becomes full
_NEEDS_LOGIN = ("prompts disabled", "could not read Username", "could not read Password")
POLL_INTERVAL_S = 0.02
SIZE_INTERVAL_S = 0.5

# Variables of a caller that runs inside a repository or debugs git.
_DROPPED = {
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE"),
    *("GIT_TEMPLATE_DIR", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_EXTERNAL_DIFF"),
    *("GIT_REPLACE_REF_BASE", "GIT_GRAFT_FILE", "GIT_TRACE", "GIT_TRACE2"),
    *("GIT_TRACE_CURL", "GIT_TRACE_PACKET", "GIT_CURL_VERBOSE", "GIT_PROTOCOL_FROM_USER"),
}
# Overrides for the user's own configuration, whose credential helpers and proxies stay in use.
_CONFIGURATION = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.bigFileThreshold": "16m",
    "core.attributesFile": os.devnull,
    "protocol.ext.allow": "never",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": str(STALL_TIMEOUT_S),
    "advice.detachedHead": "false",
}


class Git:
    """Calls git in a separate folder.

    Args:
        folder: An empty folder, which ``init`` makes a bare repository.
        url: The URL after redirects. It is configured as ``origin``, so that it is not on the
            command line.
        shown: The URL as the user gave it, without secrets, for messages.
        protocol: The only protocol that git may use.
        is_cancelled: Whether to end soon.
        may_ask: Whether git may ask the user for a password at the terminal.
    """

    def __init__(
        self,
        folder: Path,
        url: str,
        shown: str,
        protocol: str,
        is_cancelled: Callable[[], bool],
        *,
        may_ask: bool,
    ) -> None:
        self.folder = folder
        self._url = url
        self._shown = shown
        self._is_cancelled = is_cancelled
        self._may_ask = may_ask
        self._environment = {
            **_environment(url, protocol, may_ask=may_ask),
            # Before `init`, git must not find a repository above the folder.
            "GIT_CEILING_DIRECTORIES": str(folder.absolute().parent),
        }

    def call(self, *arguments: str, given: Path | None = None) -> Path:
        """Run git, and return the file with its output, which the next call replaces.

        Args:
            arguments: The command and its arguments. Untrusted ones must not start with a dash.
            given: A file with its input.

        Raises:
            SourceError: It failed, took too long, or wrote too much.
        """
        program = shutil.which("git")
        if program is None:
            raise SourceError("The program `git` is missing; install it to use git repositories.")
        output, errors = self.folder / "output", self.folder / "errors"
        errors.write_bytes(b"\n" * RESERVED)
        with contextlib.ExitStack() as stack:
            source = stack.enter_context(given.open("rb")) if given else subprocess.DEVNULL
            process = subprocess.Popen(  # noqa: S603 - git
                [program, *arguments],
                cwd=self.folder,
                env=self._environment,
                stdin=None if self._may_ask and not given else source,
                stdout=stack.enter_context(output.open("wb")),
                stderr=stack.enter_context(errors.open("r+b")),
                # Without a terminal, no program that git starts can ask the user.
                start_new_session=not self._may_ask,
            )
            stack.callback(self._end, process)
            self._wait(process, output)
        if process.returncode:
            raise SourceError(self._failure(errors))
        return output

    def _wait(self, process: subprocess.Popen[bytes], output: Path) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        measured_at = time.monotonic()
        while process.poll() is None:
            now = time.monotonic()
            if self._is_cancelled():
                raise SourceError(f"The fetch of {self._shown} was interrupted.")
            if now > deadline:
                raise SourceError(f"{self._shown} was not complete after {TIMEOUT_S:.0f} s.")
            if now - measured_at > SIZE_INTERVAL_S:
                measured_at = now
                if size_on_disk(self.folder) > MAX_REPOSITORY_SIZE + MAX_OUTPUT_SIZE:
                    raise SourceError(f"{self._shown} has more than {MAX_REPOSITORY_SIZE:,} bytes.")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL_INTERVAL_S)
        if output.stat().st_size > MAX_OUTPUT_SIZE:
            raise SourceError(f"{self._shown} has more files than can be read.")

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill git and the processes that it started, if it is running."""
        if process.poll() is None:
            with contextlib.suppress(OSError):
                if self._may_ask or os.name == "nt":
                    process.kill()
                else:
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _failure(self, errors: Path) -> str:
        """Git's own error message, without secrets."""
        text = errors.read_bytes().strip()[-10_000:].decode(errors="replace")
        lines = [one_line(line) for line in text.splitlines()]
        faults = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:"))]
        said = " ".join(line.partition(":")[2].strip().rstrip(".") + "." for line in faults)
        said = said or " ".join(lines[-2:]) or "git failed without a message."
        said = cut(masked(said.replace(self._url, self._shown)), MAX_MESSAGE_LENGTH)
        return f"{self._shown} cannot be fetched: {said}{_advice(text, may_ask=self._may_ask)}"


def _advice(text: str, *, may_ask: bool) -> str:
    if not may_ask and any(words in text for words in _NEEDS_LOGIN):
        return " It needs a login: let a credential helper of git remember it."
    if not may_ask and ("Permission denied" in text or "Host key verification" in text):
        return " Connect once with ssh, and load its key into the agent."
    return ""


def _environment(url: str, protocol: str, *, may_ask: bool) -> Mapping[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    count = environment.get("GIT_CONFIG_COUNT", "")
    number = int(count) if count.isdecimal() else 0
    asking = {"credential.helper": f"cache --timeout={REMEMBERED_S}"} if may_ask else {}
    for key, value in {**_CONFIGURATION, **asking, "remote.origin.url": url}.items():
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
        number += 1
    environment |= {
        "GIT_CONFIG_COUNT": str(number),
        "GIT_ALLOW_PROTOCOL": protocol,
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    if not may_ask:
        environment |= {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "SSH_ASKPASS_REQUIRE": "never",
            "GCM_INTERACTIVE": "never",
        }
    return environment
