"""Concurrent searches over HTTP, compared with a route of the same server that only embeds."""

import http.client
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np

from benchmarks.indexing import ITEMS, MODEL
from benchmarks.measure import Figure
from benchmarks.texts import questions

CLIENTS = 16
ROUNDS = 3
READY_TIMEOUT_S = 60.0
ROUND_S = 10.0  # seconds per route and round
SINGLE_ROUND_S = 3.0  # the same for a single client
QUESTIONS = 20_000  # more than are sent, so that no answer comes from a cache


def run(folder: Path) -> list[Figure]:
    """Send requests to a server for the index of the indexing benchmark."""
    asked = {route: cycle(dict.fromkeys(questions(QUESTIONS))) for route in ("/search", "/embed")}
    taken: dict[str, list[float]] = {"/search": [], "/embed": []}
    single: dict[str, list[float]] = {"/search": [], "/embed": []}
    with server(folder) as (_, port):
        for route, texts in asked.items():  # not measured: the first requests warm up
            ask(port, route, texts, 1.0)
        for _ in range(ROUNDS):
            for route, texts in asked.items():
                taken[route] += ask(port, route, texts, ROUND_S)
            for route, texts in asked.items():
                single[route] += ask(port, route, texts, SINGLE_ROUND_S, clients=1)
    searches, alone = taken["/search"], taken["/embed"]
    name = f"search over HTTP, {CLIENTS} at once, at {ITEMS:,} items"
    against = "the same server with a handler that only embeds"
    rate = Figure(
        name=name,
        ours=len(searches) / (ROUNDS * ROUND_S),
        other=len(alone) / (ROUNDS * ROUND_S),
        against=against,
        unit="requests/s",
        target=0.5,
        at_least=True,
    )
    alone_and_warm = Figure(
        name=f"search over HTTP, one at a time, at {ITEMS:,} items, p50",
        ours=float(np.median(single["/search"])) * 1e3,
        other=float(np.median(single["/embed"])) * 1e3,
        against=against,
        unit="ms",
        target=1.4,
    )
    return [alone_and_warm, rate] + [
        Figure(
            name=f"{name}, p{share}",
            ours=float(np.percentile(searches, share)) * 1e3,
            other=float(np.percentile(alone, share)) * 1e3,
            against=against,
            unit="ms",
            target=2.5,
        )
        for share in (50, 95, 99)
    ]


@contextmanager
def server(
    folder: Path, model: str = MODEL, seconds: float = READY_TIMEOUT_S
) -> Iterator[tuple[int, int]]:
    """Run the server in a separate process, so that the clients do not slow it down.

    Args:
        folder: The folder with the project and the data directory.
        model: The embedding model.
        seconds: The timeout for the server to become ready.

    Yields:
        The process id and the port, once the server is ready.
    """
    command = [sys.executable, "-m", "benchmarks.query_server"]
    with subprocess.Popen(
        [*command, str(folder / "project"), str(folder / "data"), model],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout
            port = urlsplit(process.stdout.readline().strip()).port
            assert port, "the server ended"
            wait_until_ready(port, seconds)
            yield process.pid, port
        finally:
            process.terminate()


def wait_until_ready(port: int, seconds: float) -> None:
    """Wait until the server reports that it is ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_TIMEOUT_S)
    end = time.monotonic() + seconds
    while True:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        content = response.read()
        if response.status == 200:
            return connection.close()
        assert time.monotonic() < end, content
        time.sleep(0.1)


def ask(
    port: int, route: str, texts: Iterator[str], duration: float, clients: int = CLIENTS
) -> list[float]:
    """Send requests without pauses; each client has a persistent connection.

    Returns:
        The seconds until each answer. An answer with an error ends the benchmark.
    """
    end = time.perf_counter() + duration

    def client(_: int) -> Sequence[float]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        taken = []
        while (began := time.perf_counter()) < end:
            get(connection, route, next(texts))
            taken.append(time.perf_counter() - began)
        connection.close()
        return taken

    with ThreadPoolExecutor(clients) as pool:
        return [one for taken in pool.map(client, range(clients)) for one in taken]


def get(connection: http.client.HTTPConnection, route: str, text: str) -> None:
    """Send one request on a persistent connection."""
    connection.request("GET", f"{route}?q={quote(text)}")
    response = connection.getresponse()
    content = response.read()
    assert response.status == 200, content
