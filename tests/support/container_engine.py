"""Find Docker or Podman and run its commands."""

import os
import re
import shutil
import subprocess
from pathlib import Path

# Per program: its name, its compose command, the command that prints the version to check, and the
# minimum version. Older versions of Podman cannot wait until a container is healthy.
_PROGRAMS = (
    ("docker", ("docker", "compose"), ("docker", "compose", "version", "--short"), (2, 24)),
    ("podman", ("podman-compose",), ("podman", "version", "--format={{.Client.Version}}"), (4, 6)),
)
# Only these variables are passed on, so that settings of Repertory and compose have no effect.
_KEPT = (
    "PATH",
    "HOME",
    "LANG",
    "XDG_RUNTIME_DIR",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
)
_ANSWER_S = 20.0
_PULL_S = 600.0
_TASK_S = 3_000.0


class NoEngineError(Exception):
    """No engine is usable; the message gives the reason for each program."""


class Engine:
    """Runs the commands of a container engine.

    Args:
        program: ``docker`` or ``podman``.
        compose: The compose command.
    """

    def __init__(self, program: str, compose: tuple[str, ...]) -> None:
        self.program = program
        self._compose = compose

    def run(self, *arguments: str | Path) -> str:
        """Run a command and return its output; raises AssertionError if it fails."""
        return _run([self.program, *map(str, arguments)])

    def compose(self, *arguments: str | Path, settings: dict[str, str]) -> str:
        """Run a compose command with the given variables, ignoring the user's own."""
        return _run([*self._compose, "--env-file", os.devnull, *map(str, arguments)], settings)

    def has(self, image: str) -> bool:
        """Whether an image is available locally."""
        return _fault([self.program, "image", "inspect", image]) == ""

    def can_have(self, image: str) -> bool:
        """Whether an image is available; pulls it if necessary."""
        return self.has(image) or _fault([self.program, "pull", "--quiet", image], _PULL_S) == ""


def find_engine() -> Engine:
    """The first engine that answers, has a compose command, and is recent enough.

    Raises:
        NoEngineError: No engine is usable.
    """
    reasons = []
    for program, compose, printing, minimum in _PROGRAMS:
        for command in ([program, "version"], [*compose, "version"]):
            if fault := _fault(command):
                reasons.append(f"`{' '.join(command)}`: {fault}")
                break
        else:
            version = _run([*printing])
            if tuple(map(int, re.findall(r"\d+", version)[:2])) >= minimum:
                return Engine(program, compose)
            least = ".".join(map(str, minimum))
            reasons.append(f"`{' '.join(printing)}`: {version} is older than {least}")
    raise NoEngineError(f"No container engine can run the compose file. {'; '.join(reasons)}")


def _environment(settings: dict[str, str]) -> dict[str, str]:
    return {name: os.environ[name] for name in _KEPT if name in os.environ} | settings


def _run(command: list[str], settings: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        env=_environment(settings or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=_TASK_S,
    )
    assert done.returncode == 0, (
        f"{' '.join(command)}\n{done.stdout[-4_000:]}{done.stderr[-8_000:]}"
    )
    return done.stdout.strip()


def _fault(command: list[str], seconds: float = _ANSWER_S) -> str:
    """The reason why a command fails, in one line; empty if it succeeds."""
    if not shutil.which(command[0]):
        return "is not installed"
    try:
        done = subprocess.run(
            command,
            env=_environment({}),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:.0f} s"
    if done.returncode == 0:
        return ""
    return (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
