"""A one-shot command and a server give the same answers and statistics."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import repertory
from repertory.remote.client import Client
from repertory.search.answer import Answer
from repertory.search.query import Query
from tests.support.command_line import Cli
from tests.support.query_service import MODEL
from tests.support.server_process import Serve
from tests.support.waiting import until

EXAMPLES = Path(__file__).parents[2] / "examples"
QUERIES = [
    "rotate a leaked key",
    "serch_notes",
    "replace a leaked password before someone misuses it",
    "commit my changes to git",
    "zxqv wobbly flurb",
    "notes",
    "post-mortem",
    "how do we deploy",
    "add a note about the meeting",
    "Ошибка при оплате",
    "write release notes from merged pull requests",
    "a",
]
A_QUERY = Query(text="a")
# These differ between runs: times, a revision made from the time, and counts of processes.
VARYING = {"at", "seen", "indexVersion", "counters", "workers", "watch"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples."""
    return Path(shutil.copytree(EXAMPLES, tmp_path_factory.mktemp("same") / "examples"))


def cli_of(folder: Path, name: str) -> Cli:
    """The command line with its own data directory."""
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    cli = Cli(home, folder.parent / name)
    cli.environment["REPERTORY_SEARCH_MODEL"] = MODEL
    return cli


@pytest.fixture(scope="module")
def one_shot(folder: Path) -> Cli:
    """The command line without a server, after ``repertory index``."""
    cli = cli_of(folder, "one-shot")
    done = cli.run(folder, "index")
    assert done.returncode == 0, done.stderr
    return cli


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[tuple[Cli, Serve]]:
    """The command line with a server that has indexed everything."""
    cli = cli_of(folder, "server")
    with Serve(cli, folder, folder.parent / "log") as serve:

        def is_whole() -> bool:
            client = Client(serve.url, serve.token)
            stats = client.stats()
            is_scanned = all(source.seen or source.error for source in stats.sources)
            is_idle = stats.watch is not None and not stats.watch.pending
            is_built = is_scanned and is_idle and stats.building is None
            # Searches read the report of the watch a moment later.
            return is_built and not any(
                "first index" in one for one in client.search(A_QUERY).notices
            )

        until(is_whole, serve.process)
        yield cli, serve


def essence(answer: Answer) -> Answer:
    """An answer without cosines, which may differ slightly, and without its revision."""
    hits = [
        replace(hit, evidence=replace(hit.evidence, semantic=None, cosine=None))
        for hit in answer.hits
    ]
    return replace(answer, hits=hits, index_version=0)


@pytest.mark.parametrize("text", QUERIES)
def test_answers_are_the_same(
    folder: Path, one_shot: Cli, server: tuple[Cli, Serve], text: str
) -> None:
    """Hits, their order, confidences, reasons and evidence are equal."""
    data = one_shot.environment["REPERTORY_DATA_DIR"]
    with repertory.open(folder, data_dir=data, model=MODEL) as session:
        alone = session.search(text, limit=20, threshold=0.0)
    with repertory.connect(server[1].url, server[1].token) as session:
        served = session.search(text, limit=20, threshold=0.0)
    assert essence(served) == essence(alone)
    # The last bit of a cosine depends on which texts were embedded together.
    assert cosines(served) == pytest.approx(cosines(alone), abs=1e-6)


def cosines(answer: Answer) -> list[float]:
    """The cosine of each hit, or 2 if it has none."""
    found = [hit.evidence.cosine for hit in answer.hits]
    return [2.0 if one is None else one for one in found]


def test_statistics_are_the_same(folder: Path, one_shot: Cli, server: tuple[Cli, Serve]) -> None:
    """``repertory stats --output json`` has equal keys, and equal values except times."""
    alone = one_shot.json(folder, "stats")
    served = server[0].json(folder, "stats")
    assert alone["items"] > 0
    assert keys(served) == keys(alone)
    assert steady(served) == steady(alone)


def keys(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The keys of an object and of nested objects, without the values in lists."""
    if isinstance(value, dict):
        return {
            key: None if key in VARYING - {"watch"} else keys(one) for key, one in value.items()
        }
    return None


def steady(value: Any) -> Any:  # noqa: ANN401 - JSON
    """A value without the keys that differ between runs."""
    if isinstance(value, dict):
        return {key: steady(one) for key, one in value.items() if key not in VARYING}
    return [steady(one) for one in value] if isinstance(value, list) else value
