"""A team's search over HTTP, with Qdrant in another process, compared with embedding the query.

Qdrant is the server given by REPERTORY_TEST_QDRANT_URL, or the stand-in.
"""

import contextlib
import http.client
import json
import os
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from benchmarks.freshness import SKILLS, TIMEOUT_S
from benchmarks.indexing import MODEL
from benchmarks.measure import Figure, medians
from benchmarks.serving import QUESTIONS, ask, get
from benchmarks.texts import descriptions, questions
from repertory.embedding.load import load_engine
from tests.support.builders import save_skill
from tests.support.command_line import COMMAND
from tests.support.team import Team

ROUNDS = 400
FACTOR, ROOM_S = 1.6, 0.003  # target: a multiple of the embedding time, plus a constant


def run(folder: Path) -> list[Figure]:
    """Search through a team's query service."""
    engine = load_engine(MODEL, "cpu", folder / "data", queries_only=True)
    texts = cycle(dict.fromkeys(questions(QUESTIONS)))
    team = Team(os.environ.get("REPERTORY_TEST_QDRANT_URL"), program=COMMAND)
    for number, (name, text) in enumerate(descriptions(SKILLS)):
        save_skill(team.project, f"{number}-{name[:80]}", json.dumps(text))
    with team:
        team.wait(lambda: team.get("/stats")["items"] >= SKILLS, TIMEOUT_S)
        ask(team.port, "/search", texts, 1.0, clients=1)  # not measured: the first requests warm up
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", team.port)) as connection:
            works: list[Callable[[], object]] = [
                lambda: get(connection, "/search", next(texts)),
                lambda: engine.embed_query(next(texts)),
            ]
            taken, alone = medians(works, ROUNDS)
    bound = FACTOR * alone + ROOM_S
    against = f"{FACTOR} times its query's embedding, and {ROOM_S * 1e3:.0f} ms"
    name = f"search over HTTP, a team of {SKILLS:,} items"
    return [
        Figure(
            name=f"{name}, p50",
            ours=taken * 1e3,
            other=bound * 1e3,
            against=against,
            unit="ms",
            target=1.0,
        )
    ]
