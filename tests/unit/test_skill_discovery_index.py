"""The skill discovery index: its entries, order, invalid embeddings, and folder."""

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
from repertory.skill_discovery.index import MAX_DIMENSION

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SkillDiscoveryIndex]:
    """An empty index."""
    with SkillDiscoveryIndex.open(tmp_path / "skills") as index:
        yield index


def add(index: SkillDiscoveryIndex, skill_id: str, embedding: Any, name: str = "A name") -> None:  # noqa: ANN401 - wrong ones too
    """Index a skill with an id and an embedding."""
    index.index_skill(skill_id, name, "Does something.", "python", embedding)


def found(index: SkillDiscoveryIndex, embedding: Any, limit: int = 10) -> list[str]:  # noqa: ANN401 - wrong ones too
    """The ids found."""
    return [one.skill_id for one in index.search(embedding, limit)]


def test_a_score_is_the_cosine_and_never_below_zero(index: SkillDiscoveryIndex) -> None:
    """Vector lengths do not matter; a negative cosine gives the score 0."""
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


def test_ties_are_ordered_by_id(index: SkillDiscoveryIndex) -> None:
    """This holds if the limit cuts a tie, and for scores that were raised to 0."""
    for number in (5, 2, 8, 1, 9, 3, 7):
        add(index, f"same-{number}", X)
    assert found(index, X, 3) == ["same-1", "same-2", "same-3"]
    assert found(index, (1, 1, 0), 1) == ["same-1"]
    add(index, "a-better-one", Y)
    assert found(index, (0.1, 1, 0), 2) == ["a-better-one", "same-1"]
    add(index, "worse", (-3, -1, 0))
    assert found(index, (-1, 0, 1), 4) == ["worse", "a-better-one", "same-1", "same-2"]


def test_indexing_again_overwrites(index: SkillDiscoveryIndex) -> None:
    """The name and the embedding are replaced; the count stays 1."""
    add(index, "a", X)
    add(index, "a", Y, "Another name")
    (result,) = index.search(Y, 5)
    assert result.name == "Another name"
    assert result.score == pytest.approx(1)
    assert index.indexed_count() == 1


def test_a_removed_skill_can_be_added_again(index: SkillDiscoveryIndex) -> None:
    """Removing twice and removing an unknown skill are allowed."""
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
        *(None, 1.0, [None, 1.0], [1.0] * (MAX_DIMENSION + 1), [1.0, [2.0]]),
    ],
    ids=lambda embedding: str(embedding)[:20],
)
def test_an_invalid_embedding_is_rejected(index: SkillDiscoveryIndex, embedding: object) -> None:
    """Indexing and searching both reject it, also in an empty index."""
    with pytest.raises(UsageError, match="embedding"):
        add(index, "a", embedding)
    with pytest.raises(UsageError, match="embedding"):
        found(index, embedding)
    assert index.indexed_count() == 0


@pytest.mark.parametrize("embedding", [[1e300, 1e300], [5e-324, 5e-324], np.ones(2, np.float16)])
def test_any_numbers_are_accepted(index: SkillDiscoveryIndex, embedding: Any) -> None:  # noqa: ANN401 - of any type
    """The score is exact for huge numbers, tiny numbers, and arrays of other types."""
    add(index, "a", embedding)
    assert index.search([3, 3], 1)[0].score == pytest.approx(1)


def test_the_dimension_is_fixed_until_the_index_is_empty(index: SkillDiscoveryIndex) -> None:
    """Another dimension is rejected, and the message says what to do."""
    assert index.dimension is None
    add(index, "a", X)
    for use in (lambda: add(index, "b", [1.0]), lambda: found(index, [1.0])):
        with pytest.raises(UsageError, match=r"has 1 numbers and those in .* have 3; embed with"):
            use()
    index.remove_skill("a")
    add(index, "b", [1.0])
    assert found(index, [2.0]) == ["b"]


@pytest.mark.parametrize("limit", [0, -1, -(10**30), "3", 2.5, None])
def test_a_limit_below_one_is_rejected(index: SkillDiscoveryIndex, limit: Any) -> None:  # noqa: ANN401 - wrong ones too
    """An empty index rejects it too; a huge limit returns everything."""
    with pytest.raises(UsageError, match="at least 1"):
        index.search(X, limit)
    add(index, "a", X)
    assert found(index, X, 10**30) == ["a"]


@pytest.mark.parametrize("skill_id", ["", "a\0b", "\ud800", "a\x1b[31m", "x" * 1_001])
def test_an_invalid_id_is_rejected(index: SkillDiscoveryIndex, skill_id: str) -> None:
    """Looking it up and removing it are allowed and have no effect."""
    with pytest.raises(UsageError, match="skill id"):
        add(index, skill_id, X)
    add(index, "a", X)
    assert not index.is_indexed(skill_id)
    index.remove_skill(skill_id)
    assert index.indexed_count() == 1


def test_an_unknown_source_is_rejected(index: SkillDiscoveryIndex) -> None:
    """The message lists the three valid sources."""
    with pytest.raises(UsageError, match="python, markdown, builtin"):
        index.index_skill("a", "A", "Does.", "elsewhere", X)  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize("texts", [("a", None, "Does."), ("a", "A", b"Does."), (5, "A", "Does.")])
def test_values_that_are_not_text_are_rejected(
    index: SkillDiscoveryIndex, texts: tuple[Any, Any, Any]
) -> None:
    """Nothing is stored, so later searches are not affected."""
    with pytest.raises(UsageError, match="texts"):
        index.index_skill(*texts, "python", X)
    add(index, "a", X)
    assert found(index, X, 5) == ["a"]


def test_texts_are_returned_unchanged(index: SkillDiscoveryIndex) -> None:
    """This holds for control characters, lone surrogates and markup."""
    texts = ("漢字 'quoted' \x1b[31m \0", "half \ud800, <script>", "builtin")
    index.index_skill("é/x", texts[0], texts[1], "builtin", X)
    (result,) = index.search(X, 1)
    assert (result.name, result.description, result.source) == texts


def test_the_index_survives_closing_and_opening(tmp_path: Path) -> None:
    """The folder is created; a closed index reports an error."""
    path = tmp_path / "not" / "there" / "yet"
    with SkillDiscoveryIndex.open(str(path)) as index:
        add(index, "a", X)
    with pytest.raises(StoreError, match="closed"):
        index.indexed_count()
    index.close()
    with SkillDiscoveryIndex.open(path) as index:
        add(index, "b", Y)
        assert found(index, X) == ["a", "b"]


def test_an_index_can_be_opened_only_once(tmp_path: Path) -> None:
    """Opening it again fails with a clear message, and the data is unharmed."""
    with SkillDiscoveryIndex.open(tmp_path) as index:
        add(index, "a", X)
        with pytest.raises(StoreBusyError, match="already open in this program"):
            SkillDiscoveryIndex.open(tmp_path)
        assert found(index, X) == ["a"]


def test_skills_written_by_another_index_in_the_meantime_are_found(tmp_path: Path) -> None:
    """An empty index does not lock the folder, so another one can write to it."""
    with SkillDiscoveryIndex.open(tmp_path) as early:
        assert early.indexed_count() == 0
        with SkillDiscoveryIndex.open(tmp_path) as other:
            add(other, "a", X)
        add(early, "b", X)
        assert found(early, X) == ["a", "b"]


@pytest.mark.parametrize("name", ["file", "file/below", "nul\0", "x" * 300])
def test_a_folder_that_cannot_be_created_is_reported(tmp_path: Path, name: str) -> None:
    """The error is a ``StoreError``."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be made"):
        SkillDiscoveryIndex.open(tmp_path / name)


def test_a_corrupt_index_is_reported(tmp_path: Path) -> None:
    """Opening it raises an error that names the collection."""
    with SkillDiscoveryIndex.open(tmp_path) as index:
        add(index, "a", X)
    for file in (tmp_path / "collections" / "skills_3").rglob("*.json"):
        file.write_text("{")
    with pytest.raises(StoreCorruptError, match="skills_3 cannot be read"):
        SkillDiscoveryIndex.open(tmp_path)


Embedding = st.tuples(*[st.integers(-9, 9)] * 3).filter(any)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    skills=st.dictionaries(st.text("abc/", min_size=1, max_size=3), Embedding, max_size=12),
    query=Embedding,
    limit=st.integers(1, 15),
)
def test_a_search_equals_a_comparison_with_all_skills(
    index: SkillDiscoveryIndex,
    skills: dict[str, tuple[int, ...]],
    query: tuple[int, ...],
    limit: int,
) -> None:
    """The scores equal those of an exhaustive comparison."""
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
