"""The cost of a catalogue by size: memory, CPU time, and the time of saves, searches, and builds.

    python -m benchmarks.sizes embedded 10000
    python -m benchmarks.sizes team 100000

The result replaces an earlier one of the same mode and size in ``benchmarks/sizes.json``, and the
table in ``docs/sizing.md`` is updated. A team runs real worker processes and a real Redis. Its
Qdrant is the server given by REPERTORY_TEST_QDRANT_URL, where Repertory's collections are deleted,
or the stand-in.
"""

import argparse
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import cycle
from pathlib import Path

import msgspec

from benchmarks import freshness, serving, sizing_table
from benchmarks.indexing import MODEL, index
from benchmarks.processes import usage
from benchmarks.sizing_table import Size, Work
from benchmarks.synthetic import questions, store_vectors, write_items
from repertory.compose import Parts
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.load import load_engine
from repertory.embedding.model_files import Format
from repertory.embedding.weights import resolve
from repertory.index.qdrant import QdrantStore
from repertory.settings import load
from tests.support.builders import save_skill
from tests.support.command_line import COMMAND
from tests.support.team import Team

SAVES = 10  # saves to measure time, and the same number without searches to measure CPU
PAUSE_S = 2.0  # seconds after each save whose CPU is measured
QUERIES = 20_000  # more than are sent, so that no answer comes from a cache
IDLE_S, IDLE_CPU = 5.0, 0.1  # seconds, and the share of a core that idle processes may use in total
ROUNDS = 3
ROUND_S = 3.0  # seconds of searches, and of embeddings, per round
BUILD_TIMEOUT_S = 6 * 3_600.0
POLL_INTERVAL_S = 1.0  # more frequent checks would add to the measured cost


def main() -> int:
    """Measure one size, and store the result."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes")
    parser.add_argument("mode", choices=("embedded", "team"))
    parser.add_argument("items", type=int)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="repertory-bench-") as name:
        measure = embedded if given.mode == "embedded" else of_team
        size = measure(Path(name), given.items)
    print(msgspec.json.format(msgspec.json.encode(size)).decode())
    sizing_table.keep(size)
    return 0


def embedded(folder: Path, items: int) -> Size:
    """Measure a single user's setup: `repertory index`, then `repertory serve`."""
    project = folder / "project"
    write_items(project, items)
    texts = _store_vectors(project, {"REPERTORY_DATA_DIR": str(folder / "data")})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    assert index(folder)["embedded"] == 0
    build_s = time.monotonic() - began
    built = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = built.ru_utime + built.ru_stime - before.ru_utime - before.ru_stime
    asked = {route: cycle(questions(QUERIES)) for route in ("/search", "/embed")}
    taken: dict[str, list[float]] = {"/search": [], "/embed": []}
    with serving.server(folder, seconds=BUILD_TIMEOUT_S) as (pid, port):
        started = usage(pid)
        serving.ask(port, "/embed", asked["/embed"], 1.0, clients=1)  # loads the route's own model
        _wait_until_idle({"serve": pid})
        spent = dict.fromkeys(asked, 0.0)
        for _ in range(ROUNDS):
            for route, queries in asked.items():
                before_cpu = usage(pid).cpu
                taken[route] += serving.ask(port, route, queries, ROUND_S, clients=1)
                spent[route] += usage(pid).cpu - before_cpu
        costs = {route: spent[route] / len(taken[route]) for route in asked}
        saved = _seconds_of_saves(project, port)
        [cost] = _cpu_of_saves(project, {"serve": pid}).values()
        memory = usage(pid).memory
    return Size(
        mode="embedded",
        store="Qdrant Edge",
        items=items,
        texts=texts,
        build_s=build_s,
        processes=[
            Work(name="index", memory=built.ru_maxrss / 1e3, build_cpu=cpu),
            Work(
                name="serve",
                memory=memory,
                build_cpu=started.cpu,
                save_cpu=cost,
                search_cpu=costs["/search"],
            ),
        ],
        save_s=saved,
        search_ms=statistics.median(taken["/search"]) * 1e3,
        embedding_ms=statistics.median(taken["/embed"]) * 1e3,
        embedding_cpu=costs["/embed"],
    )


def of_team(folder: Path, items: int) -> Size:
    """Measure the processes of a team server."""
    url = os.environ.get("REPERTORY_TEST_QDRANT_URL")
    settings = {"REPERTORY_WATCH_RECONCILE": "60"}
    made = Team(url, workers=0, settings=settings, program=COMMAND)
    write_items(made.project, items)
    engine = load_engine(MODEL, "cpu", folder / "data", queries_only=True)
    searches: list[float] = []
    alone: list[float] = []
    with made:
        texts = _store_vectors(made.project, made.environment)
        made.workers.append(made.service("worker", "worker"))
        made.workers[0].start()
        began = time.monotonic()
        made.wait(lambda: _is_built(made, items), BUILD_TIMEOUT_S)
        build_s = time.monotonic() - began
        made.wait(lambda: _is_optimized(made.qdrant_url), BUILD_TIMEOUT_S)
        ids = {"watch": made.watch.pid, "worker": made.workers[0].pid, "api": made.api.pid}
        ids["Redis"] = made.redis.pid
        if url is None:
            ids["Qdrant"] = made.qdrant.pid
        built = {name: usage(pid) for name, pid in ids.items()}
        queries = cycle(questions(QUERIES))
        serving.ask(made.port, "/search", queries, 1.0, clients=1)  # not measured: warms up
        _wait_until_idle(ids)
        spent = dict.fromkeys(ids, 0.0)
        embedding_cpu = 0.0
        for _ in range(ROUNDS):
            before = {name: usage(pid).cpu for name, pid in ids.items()}
            searches += serving.ask(made.port, "/search", queries, ROUND_S, clients=1)
            for name, pid in ids.items():
                spent[name] += usage(pid).cpu - before[name]
            began_cpu = time.process_time()
            alone += _embed(engine, queries, ROUND_S)
            embedding_cpu += time.process_time() - began_cpu
        saved = _seconds_of_saves(made.project, made.port)
        costs = _cpu_of_saves(made.project, ids)
        processes = [
            Work(
                name=name,
                memory=usage(pid).memory,
                build_cpu=built[name].cpu,
                save_cpu=costs[name],
                search_cpu=spent[name] / len(searches),
            )
            for name, pid in ids.items()
        ]
    return Size(
        mode="team",
        store="Qdrant" if url else "stand-in",
        items=items,
        texts=texts,
        build_s=build_s,
        processes=processes,
        save_s=saved,
        search_ms=statistics.median(searches) * 1e3,
        embedding_ms=statistics.median(alone) * 1e3,
        embedding_cpu=embedding_cpu / len(alone),
    )


def _embed(engine: EmbeddingEngine, texts: Iterator[str], duration: float) -> list[float]:
    """The seconds of each embedding, run one after the other."""
    end = time.perf_counter() + duration
    taken = []
    while (began := time.perf_counter()) < end:
        engine.embed_query(next(texts))
        taken.append(time.perf_counter() - began)
    return taken


def _is_built(made: Team, items: int) -> bool:
    time.sleep(POLL_INTERVAL_S)
    stats = made.get("/stats")
    return stats["items"] >= items and not (stats["watch"] or {}).get("pending", 1)


def _is_optimized(url: str) -> bool:
    """Whether Qdrant has built its indexes; searches before that are not representative."""
    time.sleep(POLL_INTERVAL_S)
    store = QdrantStore(url)
    return all(store.open(one).is_ready() for one in store.collections() if one.endswith("_g1"))


def _store_vectors(project: Path, environment: Mapping[str, str]) -> int:
    """Store the vectors of a project's texts in its cache, and return their number."""
    given = {**environment, "REPERTORY_SEARCH_MODEL": MODEL}
    settings = load({}, project, given)
    parts = Parts(settings, project)
    model = resolve(MODEL, Format.ONNX, settings.data_dir).model
    with closing(parts.cache(model)) as cache:
        return store_vectors(parts.workspace, model, cache)


def _seconds_of_saves(project: Path, port: int) -> float:
    chosen = random.Random(3)
    return statistics.median(
        freshness.until_found(project, port, number, chosen) for number in range(SAVES)
    )


def _cpu_of_saves(project: Path, ids: Mapping[str, int]) -> dict[str, float]:
    """The CPU seconds of one save in each process, beyond its idle load."""
    chosen = random.Random(4)
    idle = _spent(ids, lambda: time.sleep(SAVES * PAUSE_S))

    def save() -> None:
        for number in range(SAVES):
            words = questions(6, seed=chosen.randrange(10**9))
            save_skill(project, f"quiet-{number}", " ".join(words))
            time.sleep(PAUSE_S)

    return {name: max(0.0, cpu - idle[name]) / SAVES for name, cpu in _spent(ids, save).items()}


def _wait_until_idle(ids: Mapping[str, int]) -> None:
    """Wait until the startup work is done, so that it does not count towards searches."""
    while sum(_spent(ids, lambda: time.sleep(IDLE_S)).values()) > IDLE_CPU * IDLE_S:
        pass


def _spent(ids: Mapping[str, int], work: Callable[[], object]) -> dict[str, float]:
    """The CPU seconds of each process during some work."""
    before = {name: usage(pid) for name, pid in ids.items()}
    work()
    return {name: usage(pid).cpu - before[name].cpu for name, pid in ids.items()}


if __name__ == "__main__":
    sys.exit(main())
