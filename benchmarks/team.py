"""A team's search over HTTP, with Qdrant in another process, against the embedding of its query.

Qdrant is the server of REPERTORY_TEST_QDRANT_URL, or the stand-in, which answers as Qdrant does.
"""

import json
import os
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import numpy as np

from benchmarks.freshness import SKILLS, TIMEOUT_S, save
from benchmarks.indexing import MODEL
from benchmarks.measure import Figure
from benchmarks.serving import QUESTIONS, ask
from benchmarks.texts import descriptions, questions
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.load import load_engine
from tests.support.team import Team

ROUNDS = 5
ROUND_S = 2.0  # of searches in a round, and as many of embedding alone
FACTOR, ROOM_S = 1.6, 0.003  # of the query's embedding, and beside it


def run(folder: Path) -> list[Figure]:
    """Ask the query service of a team whose Qdrant answers as a real server does."""
    engine = load_engine(MODEL, "cpu", folder / "data", queries_only=True)
    texts = cycle(dict.fromkeys(questions(QUESTIONS)))
    searches: list[float] = []
    alone: list[float] = []
    team = Team(os.environ.get("REPERTORY_TEST_QDRANT_URL"))
    for number, (name, text) in enumerate(descriptions(SKILLS)):
        save(team.project, f"{number}-{name[:80]}", json.dumps(text))
    with team:
        team.wait(lambda: team.get("/stats")["items"] >= SKILLS, TIMEOUT_S)
        ask(team.port, "/search", texts, 1.0, clients=1)  # not measured: the first of everything
        for _ in range(ROUNDS):
            searches += ask(team.port, "/search", texts, ROUND_S, clients=1)
            alone += embedded(engine, texts, ROUND_S)
    bound = FACTOR * float(np.median(alone)) + ROOM_S
    against = f"{FACTOR} times its query's embedding, and {ROOM_S * 1e3:.0f} ms"
    name = f"search over HTTP, a team of {SKILLS:,} items"
    return [
        Figure(
            name=f"{name}, p50",
            ours=float(np.median(searches)) * 1e3,
            other=bound * 1e3,
            against=against,
            unit="ms",
            target=1.0,
        )
    ]


def embedded(engine: EmbeddingEngine, texts: Iterator[str], duration: float) -> list[float]:
    """The seconds that each embedding takes, one after the other."""
    end = time.perf_counter() + duration
    taken = []
    while (began := time.perf_counter()) < end:
        engine.embed_query(next(texts))
        taken.append(time.perf_counter() - began)
    return taken
