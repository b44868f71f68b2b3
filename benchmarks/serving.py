"""Searches of many clients at once, against the same server with a handler that only embeds."""

import http.client
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from urllib.parse import quote

import numpy as np

from benchmarks.indexing import ITEMS
from benchmarks.measure import Figure
from benchmarks.texts import questions

CLIENTS = 16
ROUNDS = 3
LASTING = 10.0  # seconds of searches in a round, and as many of embedding alone
QUESTIONS = 20_000  # more than are asked: an answer that is known already says nothing


def run(folder: Path) -> list[Figure]:
    """Ask a server of the index that the indexing benchmark left."""
    asked = {route: cycle(dict.fromkeys(questions(QUESTIONS))) for route in ("/search", "/embed")}
    taken: dict[str, list[float]] = {"/search": [], "/embed": []}
    with server(folder) as port:
        for route, texts in asked.items():  # not measured: the first of everything
            _ask(port, route, texts, 1.0)
        for _ in range(ROUNDS):
            for route, texts in asked.items():
                taken[route] += _ask(port, route, texts, LASTING)
    searches, alone = taken["/search"], taken["/embed"]
    name = f"search over HTTP, {CLIENTS} at once, at {ITEMS:,} items"
    against = "the same server with a handler that only embeds"
    rate = Figure(
        name=name,
        ours=len(searches) / (ROUNDS * LASTING),
        other=len(alone) / (ROUNDS * LASTING),
        against=against,
        unit="requests/s",
        target=0.5,
        at_least=True,
    )
    return [rate] + [
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
def server(folder: Path) -> Iterator[int]:
    """The server as a process of its own, so that asking does not slow it down; its port."""
    command = [sys.executable, "-m", "benchmarks.query_server"]
    with subprocess.Popen(
        [*command, str(folder / "project"), str(folder / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def _ask(port: int, route: str, texts: Iterator[str], lasting: float) -> list[float]:
    """Ask as fast as answers come, each client on a connection that is kept.

    Returns:
        How long each answer took, in seconds; one that is no answer ends the benchmark.
    """
    end = time.perf_counter() + lasting

    def client(_: int) -> Sequence[float]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        taken = []
        while (began := time.perf_counter()) < end:
            connection.request("GET", f"{route}?q={quote(next(texts))}")
            response = connection.getresponse()
            content = response.read()
            assert response.status == 200, content
            taken.append(time.perf_counter() - began)
        connection.close()
        return taken

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [one for taken in pool.map(client, range(CLIENTS)) for one in taken]
