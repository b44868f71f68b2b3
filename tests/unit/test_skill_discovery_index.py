"""The skill index by itself: entries, order, what cannot be an embedding, and its folder."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repertory.errors import StoreBusyError, StoreCorruptError, StoreError, UsageError
from repertory.skill_discovery import SkillDiscoveryIndex
from repertory.skill_discovery.index import LONGEST_EMBEDDING

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SkillDiscoveryIndex]:
    """An empty index."""
    with SkillDiscoveryIndex.open(tmp_path / "skills") as index:
        yield index


def add(index: SkillDiscoveryIndex, skill_id: str, embedding: Any, name: str = "A name") -> None:  # noqa: ANN401 - wrong ones too
    """Index a skill of which only the id and the embedding matter."""
    index.index_skill(skill_id, name, "Does something.", "python", embedding)


def found(index: SkillDiscoveryIndex, embedding: Any, limit: int = 10) -> list[str]:  # noqa: ANN401 - wrong ones too
    """The ids that a search finds."""
    return [one.skill_id for one in index.search(embedding, limit)]


def test_a_score_is_the_cosine_and_never_below_zero(index: SkillDiscoveryIndex) -> None:
    """Lengths do not count; what points elsewhere scores nothing."""
    for skill_id, embedding in {
        "same": (9, 0, 0),
        "near": (1, 1, 0),
        "against": (-1, 0, 0),
    }.items():
        add(index, skill_id, embedding)
    results = index.search(X, 3)
    assert [one.skill_id for one in results] == ["same", "near", "against"]
    assert [one.score for one in results] == pytest.approx([1, math.sqrt(0.5), 0], abs=1e-6)
    assert all(0 <= one.score <= 1 for one in results)


def test_equals_stand_in_the_order_of_their_ids(index: SkillDiscoveryIndex) -> None:
    """Also where the limit cuts through them, and where they only seem equal at zero."""
    for number in (5, 2, 8, 1, 9, 3, 7):
        add(index, f"same-{number}", X)
    assert found(index, X, 3) == ["same-1", "same-2", "same-3"]
    assert found(index, (1, 1, 0), 1) == ["same-1"]
    add(index, "a-better-one", Y)
    assert found(index, (0.1, 1, 0), 2) == ["a-better-one", "same-1"]
    add(index, "worse", (-3, -1, 0))
    assert found(index, (-1, 0, 1), 4) == ["worse", "a-better-one", "same-1", "same-2"]


def test_indexing_again_overwrites(index: SkillDiscoveryIndex) -> None:
    """The name and the place; there is still one."""
    add(index, "a", X)
    add(index, "a", Y, "Another name")
    (result,) = index.search(Y, 5)
    assert result.name == "Another name"
    assert result.score == pytest.approx(1)
    assert index.indexed_count() == 1


def test_what_was_removed_can_come_back(index: SkillDiscoveryIndex) -> None:
    """Removing twice, and what never was, is allowed."""
    index.remove_skill("a")
    add(index, "a", X)
    index.remove_skill("a")
    index.remove_skill("a")
    assert (index.indexed_count(), found(index, X)) == (0, [])
    add(index, "a", Y)
    assert found(index, X) == ["a"]


@pytest.mark.parametrize(
    "embedding",
    [
        *([], [0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [[1.0, 2.0]], ["a", "b"], "text"),
        *(None, 1.0, [None, 1.0], [1.0] * (LONGEST_EMBEDDING + 1), [1.0, [2.0]]),
    ],
    ids=lambda embedding: str(embedding)[:20],
)
def test_what_is_no_embedding_is_refused(index: SkillDiscoveryIndex, embedding: object) -> None:
    """Whether it is indexed or searched with, and whatever is there."""
    with pytest.raises(UsageError, match="embedding"):
        add(index, "a", embedding)
    with pytest.raises(UsageError, match="embedding"):
        found(index, embedding)
    assert index.indexed_count() == 0


@pytest.mark.parametrize("embedding", [[1e300, 1e300], [5e-324, 5e-324], np.ones(2, np.float16)])
def test_any_numbers_will_do(index: SkillDiscoveryIndex, embedding: Any) -> None:  # noqa: ANN401 - of any type
    """Huge ones, tiny ones, and arrays of any type."""
    add(index, "a", embedding)
    assert index.search([3, 3], 1)[0].score == pytest.approx(1)


def test_one_length_holds_until_it_is_empty(index: SkillDiscoveryIndex) -> None:
    """An embedding of another length is refused, in words that say what to do."""
    assert index.dimension is None
    add(index, "a", X)
    for use in (lambda: add(index, "b", [1.0]), lambda: found(index, [1.0])):
        with pytest.raises(UsageError, match=r"has 1 numbers and those in .* have 3; embed with"):
            use()
    index.remove_skill("a")
    add(index, "b", [1.0])
    assert found(index, [2.0]) == ["b"]


@pytest.mark.parametrize("limit", [0, -1, -(10**30)])
def test_a_limit_below_one_is_refused(index: SkillDiscoveryIndex, limit: int) -> None:
    """Also where there is nothing to find; one beyond all bounds finds everything."""
    with pytest.raises(UsageError, match="at least 1"):
        index.search(X, limit)
    add(index, "a", X)
    assert found(index, X, 10**30) == ["a"]


@pytest.mark.parametrize("skill_id", ["", "a\0b", "\ud800", "a\x1b[31m", "x" * 1_001])
def test_an_id_that_cannot_be_one_is_refused(index: SkillDiscoveryIndex, skill_id: str) -> None:
    """Looking for it, or removing it, is allowed: it is not there."""
    with pytest.raises(UsageError, match="skill id"):
        add(index, skill_id, X)
    add(index, "a", X)
    assert not index.is_indexed(skill_id)
    index.remove_skill(skill_id)
    assert index.indexed_count() == 1


def test_a_source_is_one_of_three(index: SkillDiscoveryIndex) -> None:
    """Another is refused with those there are."""
    with pytest.raises(UsageError, match="python, markdown, builtin"):
        index.index_skill("a", "A", "Does.", "elsewhere", X)  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize("texts", [("a", None, "Does."), ("a", "A", b"Does."), (5, "A", "Does.")])
def test_what_is_no_text_is_refused(
    index: SkillDiscoveryIndex, texts: tuple[Any, Any, Any]
) -> None:
    """Nothing of it is stored, where no search could read it any more."""
    with pytest.raises(UsageError, match="texts"):
        index.index_skill(*texts, "python", X)
    add(index, "a", X)
    assert found(index, X, 5) == ["a"]


def test_texts_come_back_as_they_were(index: SkillDiscoveryIndex) -> None:
    """Whatever characters they hold."""
    texts = ("漢字 'quoted' \x1b[31m \0", "half \ud800, <script>", "builtin")
    index.index_skill("é/x", texts[0], texts[1], "builtin", X)
    (result,) = index.search(X, 1)
    assert (result.name, result.description, result.source) == texts


def test_it_survives_closing_and_opening(tmp_path: Path) -> None:
    """In a folder that is made; what is closed says so."""
    path = tmp_path / "not" / "there" / "yet"
    with SkillDiscoveryIndex.open(str(path)) as index:
        add(index, "a", X)
    with pytest.raises(StoreError, match="closed"):
        index.indexed_count()
    index.close()
    with SkillDiscoveryIndex.open(path) as index:
        add(index, "b", Y)
        assert found(index, X) == ["a", "b"]


def test_one_at_a_time_uses_it(tmp_path: Path) -> None:
    """A second opening is refused, and says who has it; nothing is harmed."""
    with SkillDiscoveryIndex.open(tmp_path) as index:
        add(index, "a", X)
        with pytest.raises(StoreBusyError, match="in use by process"):
            SkillDiscoveryIndex.open(tmp_path)
        assert found(index, X) == ["a"]


def test_what_another_began_meanwhile_is_taken_up(tmp_path: Path) -> None:
    """While nothing is indexed, nobody holds the folder."""
    with SkillDiscoveryIndex.open(tmp_path) as early:
        assert early.indexed_count() == 0
        with SkillDiscoveryIndex.open(tmp_path) as other:
            add(other, "a", X)
        add(early, "b", X)
        assert found(early, X) == ["a", "b"]


@pytest.mark.parametrize("name", ["file", "file/below", "nul\0", "x" * 300])
def test_a_folder_that_cannot_be_made_is_said_so(tmp_path: Path, name: str) -> None:
    """In one sentence that names it."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be made"):
        SkillDiscoveryIndex.open(tmp_path / name)


def test_what_is_corrupt_is_said_so(tmp_path: Path) -> None:
    """And left as it is."""
    with SkillDiscoveryIndex.open(tmp_path) as index:
        add(index, "a", X)
    for file in (tmp_path / "collections" / "skills_3").rglob("*.json"):
        file.write_text("{")
    with pytest.raises(StoreCorruptError, match="skills_3 cannot be read"):
        SkillDiscoveryIndex.open(tmp_path)


Embedding = st.tuples(*[st.integers(-9, 9)] * 3).filter(any)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    skills=st.dictionaries(st.text("abc/", min_size=1, max_size=3), Embedding, max_size=12),
    query=Embedding,
    limit=st.integers(1, 15),
)
def test_a_search_finds_what_comparing_with_all_finds(
    index: SkillDiscoveryIndex,
    skills: dict[str, tuple[int, ...]],
    query: tuple[int, ...],
    limit: int,
) -> None:
    """The same skills with the same scores, whatever they are."""
    index.remove([entry.skill_id for entry in index.entries()])
    for skill_id, embedding in skills.items():
        add(index, skill_id, embedding)

    def cosine(embedding: tuple[int, ...]) -> float:
        a, b = np.array(embedding), np.array(query)
        return max(0.0, float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))

    scores = sorted(map(cosine, skills.values()), reverse=True)[:limit]
    results = index.search(query, limit)
    assert [one.score for one in results] == pytest.approx(scores, abs=1e-5)
    assert all(
        one.score == pytest.approx(cosine(skills[one.skill_id]), abs=1e-5) for one in results
    )
