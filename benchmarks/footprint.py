"""`repertory serve`: its memory, and the time until it accepts connections and answers."""

import contextlib
import http.client
import json
import shutil
import socket
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psutil

from benchmarks.indexing import ITEMS, environment
from benchmarks.measure import Figure
from benchmarks.processes import end
from benchmarks.starting import EXAMPLES, QUERY
from benchmarks.texts import questions
from tests.support.ports import free_port
from tests.support.query_service import bearer

MEMORY = 250.0  # maximum megabytes
START = 1.0  # maximum seconds
STARTS = 5
SEARCHES = 20
POLL_INTERVAL_S = 0.005
SETTLED_S = 3.0  # seconds without a change, after which an index counts as built
TIMEOUT_S = 300.0

PEER = "a bare server of Starlette and uvicorn"
BARE = """
    import sys
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route
    app = Starlette(routes=[Route("/healthz", lambda request: Response(b"{}"))])
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
"""


class Started(NamedTuple):
    """A running server, and the seconds until it accepted a connection and until it answered."""

    process: subprocess.Popen[bytes]
    port: int
    accepted: float
    answered: float


def run(folder: Path) -> list[Figure]:
    """Start servers for the examples, and for the index that the indexing benchmark left."""
    return [*_memory(folder), *_starts(folder)]


def _memory(folder: Path) -> list[Figure]:
    """The resident memory of a server for the examples, at its first and second start."""
    project = folder / "small"
    shutil.copytree(EXAMPLES, project)
    figures = []
    variables = environment(folder, "small-data")
    for when in ("that built its index", "after a restart"):
        with _served(project, variables) as started:
            token = _token(project, variables)
            _wait_until_indexed(started.port, token)
            for text in [QUERY, *questions(SEARCHES)]:
                _get(started.port, f"/search?q={quote(text)}", token)
            time.sleep(SETTLED_S)
            used = psutil.Process(started.process.pid).memory_info().rss
        figures.append(
            Figure(
                name=f"resident memory of `repertory serve` {when}, the examples",
                ours=used / 1e6,
                other=MEMORY,
                against="a fixed bound",
                unit="MB",
                target=1.0,
            )
        )
    return figures


def _starts(folder: Path) -> list[Figure]:
    """The time until the first connection and first response, alternating with a bare server."""
    ours, bare = [], []
    for _ in range(STARTS + 1):
        with _served(folder / "project", environment(folder)) as started:
            ours.append((started.accepted, started.answered))
        with _run((sys.executable, "-c", textwrap.dedent(BARE)), folder, None) as started:
            bare.append((started.accepted, started.answered))
    # The first starts fill the system's caches and are not counted.
    accepted, answered = map(statistics.median, zip(*ours[1:], strict=True))
    bare_accepted, bare_answered = map(statistics.median, zip(*bare[1:], strict=True))
    name = f"`repertory serve` of {ITEMS:,} items"
    rows = (
        ("until it accepts connections", accepted, START, "a fixed bound", 1.0),
        ("until it accepts connections", accepted, bare_accepted, PEER, 2.0),
        ("until its first response", answered, bare_answered, PEER, 2.0),
    )
    return [
        Figure(
            name=f"{name} {until}",
            ours=taken,
            other=other,
            against=against,
            unit="s",
            target=most,
        )
        for until, taken, other, against, most in rows
    ]


@contextmanager
def _served(project: Path, variables: dict[str, str]) -> Iterator[Started]:
    command = (sys.executable, "-m", "repertory_admin", "serve", "--port")
    with _run(command, project, variables) as started:
        yield started


@contextmanager
def _run(
    command: Sequence[str], project: Path, variables: dict[str, str] | None
) -> Iterator[Started]:
    """Run a command with a port appended, and yield the server once it answers."""
    port = free_port()
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, str(port)],
        cwd=project,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not _accepts(port):
            assert process.poll() is None, f"{command} ended"
            assert time.perf_counter() - began < TIMEOUT_S, f"{command} does not listen"
            time.sleep(POLL_INTERVAL_S)
        accepted = time.perf_counter() - began
        _get(port, "/healthz")
        yield Started(process, port, accepted, time.perf_counter() - began)
    finally:
        end(process, TIMEOUT_S)


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), TIMEOUT_S):
        return True
    return False


def _token(project: Path, variables: dict[str, str]) -> str:
    """The token for requests to this user's own server."""
    command = (sys.executable, "-m", "repertory_admin", "keys", "token")
    return subprocess.check_output(command, cwd=project, env=variables, text=True).strip()


def _wait_until_indexed(port: int, token: str) -> None:
    """Wait until there are items, nothing is pending, and nothing changes for a while."""
    end = time.monotonic() + TIMEOUT_S
    last, since = None, time.monotonic()
    while last is None or time.monotonic() - since < SETTLED_S:
        assert time.monotonic() < end, last
        time.sleep(0.2)
        status, found = _get(port, "/stats", token)
        is_done = status == 200 and found["items"] and not found["watch"]["pending"]
        now = (found["items"], found["indexVersion"]) if is_done else None
        if now != last:
            last, since = now, time.monotonic()


def _get(port: int, target: str, token: str = "") -> tuple[int, Any]:
    """Send a GET request; returns the status and the parsed JSON."""
    headers = bearer(token) if token else {}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", target, headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()
