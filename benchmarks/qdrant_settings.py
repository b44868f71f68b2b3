"""The effect of a Qdrant server's settings on the time and recall of searches of many vectors.

    python -m benchmarks.qdrant_settings 1000000

REPERTORY_TEST_QDRANT_URL names the server; the collection is deleted at the end. The vectors are
synthetic and lie around topics; see ``synthetic.py``. Searches run one after the other and request
as many points as Repertory does. Times are measured by the server. Recall is the share of the 15
nearest points that are among the first 15 found.
"""

import itertools
import os
import sys
import time
from collections.abc import Iterator

import httpx
import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.synthetic import vectors
from repertory.index.qdrant import QdrantStore
from repertory.index.qdrant_connection import QdrantServer, Result
from repertory.search.semantic_arm import MAX_BY_MEANING

NAME = "repertory_bench_settings"
DIMENSION = 384
BATCH = 1_000  # points per write
QUERIES = 300
NEAREST = 15
EF = (64, 128, 256)
OVERSAMPLING = (1.0, 2.0, 3.0)

Vectors = NDArray[np.float32]


class _Info(msgspec.Struct):
    segments_count: int


class _Point(msgspec.Struct):
    id: int


class _Points(msgspec.Struct):
    points: list[_Point]


class _Found(msgspec.Struct):
    result: _Points
    time: float  # seconds, measured by the server


def main(points: int) -> None:
    """Fill a collection, then search it with several settings."""
    url = os.environ["REPERTORY_TEST_QDRANT_URL"]
    store, server = QdrantStore(url), QdrantServer(url, None)
    if server.exists(NAME):
        store.drop(NAME)
    collection = store.create(NAME, DIMENSION)
    try:
        queries = vectors((b"query %d" % number for number in range(QUERIES)), DIMENSION)
        exact = _filled(server, points, queries)
        began = time.perf_counter()
        collection.optimize()
        segments = server.ask(f"/collections/{NAME}", Result[_Info]).segments_count
        print(f"graphs after {time.perf_counter() - began:.0f} s more, {segments} segments")
        _measure(url, queries, exact)
    finally:
        store.drop(NAME)


def _filled(server: QdrantServer, points: int, queries: Vectors) -> list[set[int]]:
    """Write the points, and return the ids of the points nearest to each query."""
    scores = np.full((len(queries), NEAREST), -1.0, np.float32)
    nearest = np.zeros((len(queries), NEAREST), np.int64)
    spent = 0.0
    for ids, made in _batches(points):
        began = time.perf_counter()
        batch = {"ids": ids.tolist(), "vectors": made.tolist()}
        server.change("PUT", f"/collections/{NAME}/points", {"batch": batch})
        spent += time.perf_counter() - began
        both = np.hstack([scores, queries @ made.T])
        numbers = np.hstack([nearest, np.broadcast_to(ids, (len(queries), len(ids)))])
        best = np.argpartition(-both, NEAREST)[:, :NEAREST]
        scores = np.take_along_axis(both, best, 1)
        nearest = np.take_along_axis(numbers, best, 1)
    print(f"{points:,} points sent in {spent:.0f} s")
    return [{*row} for row in nearest.tolist()]


def _batches(points: int) -> Iterator[tuple[NDArray[np.int64], Vectors]]:
    for start in range(0, points, BATCH):
        ids = np.arange(start, min(start + BATCH, points))
        yield ids, vectors((b"point %d" % number for number in ids.tolist()), DIMENSION)


def _measure(url: str, queries: Vectors, exact: list[set[int]]) -> None:
    client = httpx.Client(base_url=url, timeout=600)
    for ef, oversampling in itertools.product(EF, OVERSAMPLING):
        quantization = {"rescore": True, "oversampling": oversampling}
        params = {"hnsw_ef": ef, "quantization": quantization}
        taken, found = [], 0
        for again in (False, True):  # only the second round counts; the first fills the disk cache
            for query, wanted in zip(queries, exact, strict=True):
                body = {"query": query.tolist(), "limit": MAX_BY_MEANING, "params": params}
                answer = client.post(f"/collections/{NAME}/points/query", json=body)
                answer.raise_for_status()
                if again:
                    given = msgspec.json.decode(answer.content, type=_Found)
                    taken.append(given.time)
                    found += len(wanted & {point.id for point in given.result.points[:NEAREST]})
        p50, p99 = np.percentile(taken, [50, 99]) * 1e3
        print(
            f"ef {ef}, oversampling {oversampling}: {p50:.1f} ms, p99 {p99:.1f}; "
            f"recall@{NEAREST} {found / NEAREST / len(queries):.4f}"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]))
