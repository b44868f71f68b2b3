"""Contract 4, skill discovery, tested in Python and through a running server.

Most docstrings quote the contract, with the names of its seed tests.
"""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.load import load_engine
from repertory.errors import StoreError
from repertory.functions.table import FUNCTIONS
from repertory.local.backend import Local
from repertory.local.one_shot import Repertory
from repertory.remote.client import Client
from repertory.settings import load
from repertory.skill_discovery import (
    SkillDiscoveryIndex,
    SkillSearchResult,
    extract_builtin_skill_text,
    extract_markdown_skill_text,
    extract_python_skill_text,
    rebuild_skill_index,
)
from repertory.skill_discovery.index import SkillSource
from tests.support.command_line import SKILLS, Cli, add_skill
from tests.support.query_service import MODEL
from tests.support.server_process import Serve, note_of
from tests.support.server_process import ask as sent

SEARCH = FUNCTIONS["skill.discovery.search"]
PYTHON_SKILLS = {
    "discord": "Send a message to a channel on Discord.",
    "invoices": "Read invoices and sum up what is owed.",
    "weather": "Tell how the weather will be tomorrow.",
}
BUILTINS = {"remember": "Write down what was decided, so that it is known later."}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingEngine:
    """The engine of a real model."""
    return load_engine(MODEL, "cpu", tmp_path_factory.mktemp("models"))


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SkillDiscoveryIndex]:
    """A new index."""
    with SkillDiscoveryIndex.open(tmp_path / "index") as index:
        yield index


@pytest.fixture
def skills_dir(tmp_path: Path) -> Path:
    """A folder with a ``SKILL.md`` folder and a plain Markdown skill."""
    file = add_skill(tmp_path, "pdf", "---\nname: pdf\ndescription: Fill in PDF forms.\n---\nSo.\n")
    greet = file.parent.parent / "greet.md"
    greet.write_text("# Greet\n\nWelcome guests\nwarmly.\n\nThen stop.\n")
    return greet.parent


@pytest.fixture
def python_skills_dir(tmp_path: Path) -> Path:
    """A folder with three Python skills."""
    for name, description in PYTHON_SKILLS.items():
        python_skill(tmp_path / "python", name, description)
    return tmp_path / "python"


@pytest.fixture
def rebuild(
    index: SkillDiscoveryIndex, engine: EmbeddingEngine, skills_dir: Path, python_skills_dir: Path
) -> Callable[[], int]:
    """Rebuild the index from both folders and the built-in skills."""
    return lambda: rebuild_skill_index(index, engine, skills_dir, python_skills_dir, BUILTINS)


def python_skill(folder: Path, name: str, description: str) -> None:
    """Write a Python skill with its manifest."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    manifest = json.dumps({"name": name, "description": description})
    (folder / name / "skill.json").write_text(manifest)
    (folder / name / "main.py").write_text("raise SystemExit('never run')\n")


def test_sources_are_folders_manifests_markdown_and_built_in_skills(
    rebuild: Callable[[], int], index: SkillDiscoveryIndex
) -> None:
    """Sources: `SKILL.md` folders, Python skills with a manifest, Markdown, built-in skills."""
    rebuild()
    sources = {entry.skill_id: entry.source for entry in index.entries()}
    assert sources == {
        "skills/pdf": "markdown",
        "markdown/greet": "markdown",
        "builtin/remember": "builtin",
        **{f"python/{name}": "python" for name in PYTHON_SKILLS},
    }


def test_opening_creates_the_folder(tmp_path: Path) -> None:
    """`open` (seed: `open_creates_tables`): a missing folder is created, empty."""
    with SkillDiscoveryIndex.open(tmp_path / "new" / "index") as index:
        assert index.indexed_count() == 0
    assert (tmp_path / "new" / "index").is_dir()


def test_an_indexed_skill_is_found(index: SkillDiscoveryIndex) -> None:
    """`index_skill`, `search(embedding, limit)` (seed: `index_and_search_returns_match`)."""
    index.index_skill("discord", "Discord", "Send a message.", "python", [1.0, 0.0])
    (result,) = index.search([1.0, 0.0], 5)
    assert result == SkillSearchResult(
        skill_id="discord", name="Discord", description="Send a message.", source="python", score=1
    )


def test_a_removed_skill_is_not_found(index: SkillDiscoveryIndex) -> None:
    """`remove_skill` (seed: `remove_skill_deletes_from_index`)."""
    index.index_skill("discord", "Discord", "Send a message.", "python", [1.0])
    index.remove_skill("discord")
    assert index.search([1.0], 5) == []


def test_is_indexed_follows_indexing_and_removal(index: SkillDiscoveryIndex) -> None:
    """`is_indexed` (seed: `is_indexed_returns_correct_status`)."""
    assert not index.is_indexed("discord")
    index.index_skill("discord", "Discord", "Send a message.", "python", [1.0])
    assert index.is_indexed("discord")
    index.remove_skill("discord")
    assert not index.is_indexed("discord")


def test_an_empty_index_finds_nothing(index: SkillDiscoveryIndex) -> None:
    """Seed: `search_empty_index_returns_empty`."""
    assert index.search([1.0, 2.0], 5) == []


def test_entries_are_counted(index: SkillDiscoveryIndex) -> None:
    """`indexed_count` (seed: `indexed_count_tracks_entries`)."""
    for number, skill_id in enumerate(("a", "b", "b"), start=1):
        index.index_skill(skill_id, "A skill", "", "markdown", [1.0, number])
    assert index.indexed_count() == 2
    index.remove_skill("a")
    assert index.indexed_count() == 1


def test_results_are_scored_best_first(index: SkillDiscoveryIndex) -> None:
    """Results carry a score in 0…1, higher is better, best first."""
    for degrees in (90, 30, 180, 0, 60):
        angle = math.radians(degrees)
        embedding = [math.cos(angle), math.sin(angle)]
        index.index_skill(f"at-{degrees:03}", "", "", "builtin", embedding)
    results = index.search([1.0, 0.0], 5)
    assert [one.skill_id[3:] for one in results] == ["000", "030", "060", "090", "180"]
    assert [one.score for one in results] == pytest.approx([1, 0.866, 0.5, 0, 0], abs=1e-3)


def test_results_have_the_fields_of_the_contract() -> None:
    """Results carry `skill_id, name, description, source ('python' | 'markdown' | 'builtin')`."""
    fields = ("skill_id", "name", "description", "source", "score")
    assert SkillSearchResult.__struct_fields__ == fields
    assert get_args(SkillSource) == ("python", "markdown", "builtin")


def test_the_text_of_a_python_skill(python_skills_dir: Path) -> None:
    """Seed: `extract_python_skill_text_from_manifest`."""
    expected = ("discord", PYTHON_SKILLS["discord"])
    assert extract_python_skill_text(python_skills_dir, "discord") == expected


@pytest.mark.parametrize(
    "skill_id", ["missing", "broken", "", "..", "/etc", "a\0b", "x" * 5_000, "\ud800", "stolen"]
)
def test_the_text_of_a_python_skill_without_a_manifest(
    python_skills_dir: Path, skill_id: str
) -> None:
    """Seed: `extract_python_skill_text_missing_manifest_returns_none`.

    The same for a broken manifest, and for one outside the folder.
    """
    (python_skills_dir / "broken").mkdir()
    (python_skills_dir / "broken" / "skill.json").write_text("{")
    python_skill(python_skills_dir.parent, "other", "Lies outside.")
    (python_skills_dir / "stolen").mkdir()
    (python_skills_dir / "stolen" / "skill.json").symlink_to("../../other/skill.json")
    assert extract_python_skill_text(python_skills_dir, skill_id) is None


def test_the_text_of_a_markdown_skill(skills_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name from the file, description from the first paragraph (`…_markdown_…_from_file`)."""
    expected = ("greet", "Welcome guests warmly.")
    assert extract_markdown_skill_text(skills_dir / "greet.md") == expected
    monkeypatch.chdir(skills_dir)
    assert extract_markdown_skill_text(Path("greet.md")) == expected
    assert extract_markdown_skill_text(Path("missing.md")) is None
    assert extract_markdown_skill_text(Path("nul\0.md")) is None


def test_the_text_of_a_built_in_skill() -> None:
    """First 500 characters (seed: `extract_builtin_skill_text_truncates`)."""
    assert extract_builtin_skill_text("a", "é" * 501) == ("a", "é" * 500)
    assert extract_builtin_skill_text("b", "Short.") == ("b", "Short.")


def test_rebuilding_indexes_all_three(
    rebuild: Callable[[], int], index: SkillDiscoveryIndex
) -> None:
    """`rebuild_skill_index` scans all three and returns how many it indexed."""
    assert rebuild() == index.indexed_count() == 6


def test_rebuilding_skips_unchanged_skills(
    rebuild: Callable[[], int], index: SkillDiscoveryIndex
) -> None:
    """Seed: `rebuild_skips_already_indexed`."""
    rebuild()
    assert rebuild() == 0
    assert index.indexed_count() == 6


def test_rebuilding_embeds_changed_skills_again(
    rebuild: Callable[[], int],
    index: SkillDiscoveryIndex,
    engine: EmbeddingEngine,
    python_skills_dir: Path,
) -> None:
    """Seed: `reindex_updates_changed_descriptions`."""
    rebuild()
    python_skill(python_skills_dir, "weather", "Book a table in a restaurant.")
    assert rebuild() == 1
    (best,) = index.search(engine.embed_query("reserve somewhere to have dinner"), 1)
    assert best.description == "Book a table in a restaurant."


def test_a_python_skill_is_found_by_its_description(
    rebuild: Callable[[], int], index: SkillDiscoveryIndex, engine: EmbeddingEngine
) -> None:
    """Find installed skills by meaning (`index_python_skill_and_search_by_description`)."""
    rebuild()
    results = index.search(engine.embed_query("write to my team in their chat"), 6)
    assert results[0].skill_id == "python/discord"
    scores = [one.score for one in results]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] < scores[0] <= 1


# The command


@pytest.fixture(scope="module")
def embedded(served: Path) -> Iterator[Repertory]:
    """The served project opened in this process, with its own index."""
    with Repertory(
        load({"data_dir": str(served.parent / "own"), "model": MODEL}, served), served
    ) as it:
        it.index(lambda *_: None)
        yield it


@pytest.fixture(scope="module")
def url(user: Cli, served: Path) -> str:
    """The URL of the project's server."""
    return note_of(user, served).url


@pytest.fixture(scope="module")
def token(user: Cli, served: Path) -> str:
    """The token of the project's server."""
    return note_of(user, served).token


@pytest.fixture(params=["python", "client", "http"])
def ask(
    request: pytest.FixtureRequest, embedded: Local, url: str, token: str
) -> Callable[..., Any]:
    """Run the command in this process, through a client, and over HTTP."""
    if request.param == "http":
        return lambda **arguments: posted(url, token, arguments)
    backend = embedded if request.param == "python" else Client(url, token)
    return lambda **arguments: SEARCH.call(backend, arguments)


def posted(url: str, token: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """The command's answer over HTTP."""
    request = Request(
        f"{url}/functions/skill.discovery.search",
        json.dumps(arguments).encode(),
        {"Content-Type": "application/json"},
    )
    with sent(request, token) as response:
        return json.load(response)


def test_the_command_takes_a_query_and_a_limit(ask: Callable[..., Any]) -> None:
    """The command takes `{"query", "limit"}` and returns `{"results": [{"skill_id", …}]}`."""
    answer = ask(query="make a loaf of bread", limit=2)
    assert list(answer) == ["results"]
    assert len(answer["results"]) == 2
    first = answer["results"][0]
    assert {key: value for key, value in first.items() if key != "score"} == {
        "skill_id": "project/bread-baking",
        "name": "bread-baking",
        "description": SKILLS["bread-baking"],
    }
    assert 0 <= answer["results"][1]["score"] <= first["score"] <= 1


def test_the_command_finds_skills_only(ask: Callable[..., Any]) -> None:
    """Find installed skills: neither tools nor documents; the limit may be left out."""
    names = {one["name"] for one in ask(query="read the contents of a file")["results"]}
    assert names
    assert names <= set(SKILLS)


@pytest.mark.parametrize("query", ["", " ", "\n\t　"])
def test_an_empty_query_gives_an_empty_list(ask: Callable[..., Any], query: str) -> None:
    """An empty query gives an empty list (seed: `empty_query_returns_empty`)."""
    assert ask(query=query) == {"results": []}


def test_an_empty_index_gives_an_empty_list(tmp_path: Path) -> None:
    """An empty index gives an empty list, whether missing or without skills."""
    settings = load({"data_dir": str(tmp_path / "data"), "model": MODEL}, tmp_path)
    with Repertory(settings, tmp_path) as repertory:
        assert SEARCH.call(repertory, {"query": "anything"}) == {"results": []}
    home = tmp_path / "home"
    home.mkdir()
    with Serve(Cli(home, tmp_path / "data"), tmp_path, tmp_path / "log") as server:
        assert posted(server.url, server.token, {"query": "anything"}) == {"results": []}


def test_an_unavailable_store_is_an_error() -> None:
    """Other failures are errors, not empty lists."""
    with pytest.raises(StoreError, match="cannot be reached"):
        SEARCH.call(Client("http://127.0.0.1:9"), {"query": "anything"})


@pytest.mark.parametrize(
    "arguments",
    [{}, {"query": 5}, {"query": "x", "limit": 0}, {"query": "x", "limit": 101}, {"q": "x"}],
)
def test_invalid_arguments_of_the_command_are_refused(
    url: str, token: str, arguments: dict[str, Any]
) -> None:
    """Invalid arguments get status 422 with a message that names the command."""
    with pytest.raises(HTTPError) as refused:
        posted(url, token, arguments)
    assert refused.value.code == 422
    assert json.load(refused.value)["detail"].startswith("skill.discovery.search: ")
    refused.value.close()
