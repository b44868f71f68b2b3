"""The time from a save to its first hit, compared with the minimum work of a save.

The minimum work is to receive a file event, embed the text, and write the point.
"""

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from benchmarks.indexing import ITEMS, MODEL
from benchmarks.measure import Figure
from benchmarks.texts import descriptions
from repertory.catalogue.item import Item, Kind, item_key, point_id
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.load import load_engine
from repertory.index.qdrant import QdrantStore
from repertory.index.vectors import Collection, Point
from tests.support.builders import save_skill
from tests.support.command_line import COMMAND, Cli
from tests.support.query_service import bearer
from tests.support.server_process import Serve
from tests.support.team import Team

SKILLS = 1_000
SAVES = 40
DEBOUNCE_S = 0.3  # the default
LIMIT_S = 2.0
POLL_INTERVAL_S = 0.005
TIMEOUT_S = 300.0


def run(folder: Path) -> list[Figure]:
    """Save skills in a team's folder, and in the project of the indexing benchmark."""
    chosen = random.Random(3)
    team, floor = _team(folder, chosen)
    large = _embedded(folder, chosen)
    least = DEBOUNCE_S + float(np.median(floor))
    against = f"{DEBOUNCE_S} s of quiet, and event, embedding and write"
    rows = (
        (f"a team of {SKILLS:,} items", team, 2.0),
        (f"`repertory serve` of {ITEMS:,} items", large, 4.0),
    )
    figures = []
    for where, taken, target in rows:
        median, late = np.percentile(taken, [50, 95])
        figures += [
            Figure(
                name=f"save → searchable, {where}, p50",
                ours=float(median),
                other=least,
                against=against,
                unit="s",
                target=target,
            ),
            Figure(
                name=f"save → searchable, {where}, p95",
                ours=float(late),
                other=LIMIT_S,
                against="the required time",
                unit="s",
                target=1.0,
            ),
        ]
    beyond = Figure(
        name=f"save → searchable, a team of {SKILLS:,} items, p50 beyond {DEBOUNCE_S} s of quiet",
        ours=float(np.median(team)) - DEBOUNCE_S,
        other=float(np.median(floor)),
        against="event, embedding and write",
        unit="s",
        target=15.0,
    )
    return [*figures, beyond]


def _team(folder: Path, chosen: random.Random) -> tuple[list[float], list[float]]:
    """The seconds of saves in a team's folder and of the minimum work, measured in turn."""
    taken: list[float] = []
    floor: list[float] = []
    team = Team(program=COMMAND)
    for number, (name, text) in enumerate(descriptions(SKILLS)):
        save_skill(team.project, f"{number}-{name[:80]}", json.dumps(text))
    with team, _floor(folder, team.qdrant_url) as least:
        port = team.port
        team.wait(lambda: team.get("/stats")["items"] >= SKILLS, TIMEOUT_S)
        for number in range(SAVES):
            taken.append(until_found(team.project, port, number, chosen))
            floor.append(least(_sentence(_word(chosen))))
    return taken, floor


def _embedded(folder: Path, chosen: random.Random) -> list[float]:
    """The seconds of saves in the large project of the indexing benchmark."""
    project = folder / "project"
    cli = Cli(folder, folder / "data")
    cli.environment["REPERTORY_SEARCH_MODEL"] = MODEL
    with Serve(cli, project, folder / "serve.log") as server:
        port = urlsplit(server.url).port
        assert port
        token = server.token
        return [until_found(project, port, number, chosen, token) for number in range(SAVES)]


def until_found(
    project: Path, port: int, number: int, chosen: random.Random, token: str = ""
) -> float:
    """Save a skill with a unique word, and search for it until it is found.

    Args:
        project: The watched folder.
        port: The port of the server.
        number: The number of the save, which becomes part of the skill's name.
        chosen: The source of random words.
        token: The token, which only a user's own server requires.

    Returns:
        The seconds until the skill was found.
    """
    word, name = _word(chosen), f"saved-{number}"
    headers = bearer(token) if token else {}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    asked = urlencode({"q": word, "limit": 1, "threshold": 0})
    time.sleep(chosen.uniform(0.1, 0.6))  # avoids synchronisation with periodic work

    def is_first() -> bool:
        connection.request("GET", f"/search?{asked}", headers=headers)
        found = json.loads(connection.getresponse().read())["results"]
        return bool(found) and found[0]["toolName"] == name

    is_first()
    began = time.perf_counter()
    save_skill(project, name, _sentence(word))
    while not is_first():
        assert time.perf_counter() - began < TIMEOUT_S
        time.sleep(POLL_INTERVAL_S)
    taken = time.perf_counter() - began
    connection.close()
    return taken


@contextmanager
def _floor(folder: Path, qdrant_url: str) -> Iterator[Callable[[str], float]]:
    """Yield a function that does the minimum work of one save and returns its seconds."""
    watched = folder / "watched"
    save_skill(watched, "saved", "")  # created early, since the observer notices new folders late
    engine = load_engine(MODEL, "cpu", folder / "data")
    saved = threading.Event()
    observer = Observer()
    observer.schedule(_Saved(saved), str(watched), recursive=True)
    observer.start()
    try:
        with QdrantStore(qdrant_url).create("floor", engine.model.dimension) as collection:

            def least(text: str) -> float:
                saved.clear()
                began = time.perf_counter()
                save_skill(watched, "saved", text)
                assert saved.wait(TIMEOUT_S)
                _write(collection, engine, text, int(time.time() * 1_000))
                return time.perf_counter() - began

            yield least
    finally:
        observer.stop()
        observer.join()


class _Saved(FileSystemEventHandler):
    def __init__(self, saved: threading.Event) -> None:
        self._saved = saved

    def on_moved(self, event: FileSystemEvent) -> None:  # noqa: ARG002 - as in the base class
        """Signal that a file was saved."""
        self._saved.set()


def _write(collection: Collection, engine: EmbeddingEngine, text: str, revision: int) -> None:
    item = Item(id="floor/saved", kind=Kind.SKILL, name="saved", source="floor", description=text)
    point = Point(
        id=point_id(item_key(item.id)),
        vector=engine.embed_texts([view.text for view in item.views()])[0],
        item=item.id,
        kind=item.kind,
        source=item.source,
        content_hash=item.content_hash(),
        metadata_hash=item.metadata_hash(),
        revision=revision,
        record={},
    )
    collection.upsert([point])


def _sentence(word: str) -> str:
    return f"Handles the {word} of the printers in the office."


def _word(chosen: random.Random) -> str:
    """A random pronounceable word that practically never occurs in other texts."""
    return "".join(chosen.choice("bdfgklmnprstvz") + chosen.choice("aeiou") for _ in range(6))
