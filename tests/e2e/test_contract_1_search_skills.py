"""Contract 1, ``Vector.SearchSkills``, tested embedded and through a server.

Most docstrings quote the sentence of the contract that their test checks.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import repertory
from repertory.embedding.load import load_engine
from repertory.errors import UsageError
from repertory.functions.table import FUNCTIONS
from tests.support.command_line import add_skill
from tests.support.query_service import MODEL
from tests.support.skill_files import ADD, ADD_FILE, AREA, AREA_FILE, VOLUME, VOLUME_FILE, write
from tests.support.skill_sessions import Library, open_library
from tests.support.waiting import until

QUERY = "calculate rectangle area"
UNRELATED = "Tell me about ancient history"


@pytest.fixture(scope="module", params=["embedded", "server"])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Library]:
    """A sandbox with three files indexed by ``Vector.VectorUpdate``."""
    with open_library(tmp_path_factory.mktemp("library"), request.param) as library:
        for file in (AREA_FILE, ADD_FILE, VOLUME_FILE):
            assert library.session.vector_update(file) == "OK"
        yield library


def found(library: Library, query: str) -> list[dict[str, Any]]:
    """The decoded result of a search."""
    matches: list[dict[str, Any]] = json.loads(library.session.search_skills(query))
    return matches


def test_one_required_argument() -> None:
    """One required argument, `query` (string)."""
    parameters = FUNCTIONS["Vector.SearchSkills"].definition()["function"]["parameters"]

    assert list(parameters["properties"]) == parameters["required"] == ["query"]
    assert parameters["properties"]["query"]["type"] == "string"
    assert parameters["additionalProperties"] is False


def test_a_json_string_of_paths_and_scores(library: Library) -> None:
    """Returns a JSON **string**: a list of `{"path", "score"}`, `path` relative to the sandbox."""
    answer = library.session.search_skills("How do I add two numbers?")

    assert isinstance(answer, str)
    matches = json.loads(answer)
    (score,) = [one["score"] for one in matches if one["path"] == "library/math_helpers.ns.txt"]
    assert {"path": "library/math_helpers.ns.txt", "score": score} in matches
    assert answer == json.dumps(matches, separators=(",", ":"))


def test_the_score_is_the_plain_cosine(library: Library, tmp_path: Path) -> None:
    """`score` the plain cosine similarity (not the hybrid confidence)."""
    engine = load_engine(MODEL, "cpu", tmp_path)
    cosines = engine.embed_texts([AREA, VOLUME, ADD]) @ engine.embed_query(QUERY)
    scores = {match["path"]: match["score"] for match in found(library, QUERY)}

    assert scores[AREA_FILE] == pytest.approx(float(cosines[0]), abs=2e-4)
    assert scores[VOLUME_FILE] == pytest.approx(float(cosines[1]), abs=2e-4)


def test_sorted_and_only_similar_files(library: Library) -> None:
    """Sorted by score descending, only scores ≥ 0.5."""
    matches = found(library, QUERY)

    assert [match["path"] for match in matches] == [AREA_FILE, VOLUME_FILE]
    assert 1 >= matches[0]["score"] >= matches[1]["score"] >= 0.5


def test_ties_are_ordered_by_path(library: Library) -> None:
    """Files with the same score are ordered by path."""
    copies = [write(library.folder, f"copies/{name}.ns.txt", ADD) for name in "cab"]
    for copy in copies:
        assert library.session.vector_update(copy) == "OK"

    paths = [match["path"] for match in found(library, "add two numbers")]
    assert [path for path in paths if path in {*copies, ADD_FILE}] == [*sorted(copies), ADD_FILE]


def test_nothing_similar_enough(library: Library) -> None:
    """`"[]"` when no file reaches the minimum score."""
    assert library.session.search_skills(UNRELATED) == "[]"


def test_nothing_indexed(tmp_path: Path) -> None:
    """`"[]"` also if nothing was ever indexed and the data directory is missing."""
    with repertory.open(tmp_path, data_dir=str(tmp_path / "data"), model=MODEL) as session:
        assert session.search_skills(QUERY) == "[]"


def test_failure_to_embed(tmp_path: Path) -> None:
    """An error *message string* that starts `SearchSkills embedding generation failed:`."""
    with repertory.open(
        tmp_path, data_dir=str(tmp_path / "data"), model=str(tmp_path / "none")
    ) as session:
        answer = session.search_skills(QUERY)

    assert answer.startswith("SearchSkills embedding generation failed: ")
    assert len(answer.splitlines()) == 1


@pytest.mark.parametrize("argument", [None, 7, ["add"], {"query": "add"}, b"add"])
def test_anything_but_one_string(library: Library, argument: object) -> None:
    """Anything but exactly one string argument is a validation error."""
    with pytest.raises(UsageError, match=r"Vector\.SearchSkills"):
        library.session.search_skills(argument)  # type: ignore[arg-type]  # that is the point


def test_blank_and_too_long_queries(library: Library) -> None:
    """A blank query finds nothing; one over 32,000 characters is an error."""
    assert library.session.search_skills("") == library.session.search_skills(" \n\t") == "[]"
    with pytest.raises(UsageError, match="The query has 32,001 characters"):
        library.session.search_skills("x" * 32_001)


def test_only_the_index_is_read(library: Library) -> None:
    """The search reads the index only, never a file."""
    place = write(library.folder, "gone.ns.txt", ADD.replace("two numbers", "apples and pears"))
    assert library.session.vector_update(place) == "OK"
    (library.folder / place).unlink()

    assert found(library, "sum of apples and pears")[0]["path"] == place


def test_the_skills_of_the_catalogue(library: Library) -> None:
    """The catalogue's skills in the sandbox are found too; written vectors take precedence."""
    file = add_skill(
        library.folder, "tea", "---\nname: tea\ndescription: Brew green tea.\n---\nBoil it.\n"
    )
    place = str(file.relative_to(library.folder))
    library.session.index()
    until(lambda: [match["path"] for match in found(library, "brew green tea")] == [place])

    file.write_text("Nothing of the kind stands here: this is all about tax returns.\n")
    assert library.session.vector_update(place) == "OK"
    assert found(library, "brew green tea") == []
    assert [match["path"] for match in found(library, "all about tax returns")] == [place]
