"""The weights of a search."""

from typing import Any

import pytest

from repertory.catalogue.item import Item, Kind, item_key
from repertory.catalogue.views import LEAD
from repertory.embedding.models import Calibration
from repertory.errors import UsageError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Match, VectorQuery
from repertory.search.candidates import Candidates, all_candidates
from repertory.search.keyword_arm import KeywordResult
from repertory.search.query import MAX_QUERY_LENGTH, Query, query_of
from repertory.search.semantic_arm import VectorResult
from repertory.values import Values, Weights
from tests.support.hybrid_search import Points, WordCounts
from tests.support.keyword_search import keyword_engine

ITEMS = [
    Item(id="tools/resize-images", kind=Kind.SKILL, name="resize-images", source="tools"),
    Item(id="tools/mail", kind=Kind.SKILL, name="mail", source="tools"),
]


def test_the_name_weight_raises_items_with_a_similar_name() -> None:
    """The confidence of a name two edits away grows with the weight."""
    engine = keyword_engine(ITEMS)

    def confidence(weight: float) -> float:
        query = Query(text="resise imagess", threshold=0.0, weights=Weights(name_weight=weight))
        return engine.search(query).hits[0].confidence

    assert confidence(0.0) < confidence(0.4) < confidence(1.0)


@pytest.mark.parametrize("wrong", [{"name_weight": 1.1}, {"section_weight": -0.1}])
def test_weights_are_shares(wrong: dict[str, float]) -> None:
    """A weight below 0 or above 1 is refused by name."""
    engine = keyword_engine(ITEMS)
    with pytest.raises(UsageError, match=next(iter(wrong))):
        engine.search(Query(text="mail", weights=Weights(**wrong)))


def test_options_of_a_query_override_the_settings() -> None:
    """An option of zero overrides a setting too."""
    values = Values(limit=3, threshold=0.2, alpha=0.3, name_weight=0.4, section_weight=0.5)
    assert query_of(values, "mail") == Query(
        text="mail",
        limit=3,
        threshold=0.2,
        weights=Weights(alpha=0.3, name_weight=0.4, section_weight=0.5),
    )
    given: dict[str, Any] = {
        "threshold": 0.0,
        "alpha": 0.0,
        "name_weight": 0.0,
        "section_weight": 0.0,
    }
    assert query_of(values, "mail", limit=7, **given) == Query(
        text="mail",
        limit=7,
        threshold=0.0,
        weights=Weights(alpha=0.0, name_weight=0.0, section_weight=0.0),
    )


def test_a_query_is_checked_when_it_is_made() -> None:
    """A text of the maximum length is accepted; a longer one or an invalid option is refused."""
    assert query_of(Values(), "x" * MAX_QUERY_LENGTH, kinds=["skill", "tool"])
    for text, options in (("x" * (MAX_QUERY_LENGTH + 1), {}), ("x", {"kinds": ["spoon"]})):
        with pytest.raises(UsageError):
            query_of(Values(), text, **options)  # type: ignore[arg-type]  # by name
    with pytest.raises(UsageError, match="limit"):
        query_of(Values(), "x", limit=0)


def gathered(*scores: tuple[int | None, float], weight: float = 0.9) -> Candidates:
    """The candidates for matches of one item, each a section (None: the item's own) and a score."""
    mail = item_key("tools/mail")
    matches = [Match(key=mail, section=section, score=score) for section, score in scores]
    counts = WordCounts()
    index = KeywordIndex.empty().updated((), ITEMS)
    return all_candidates(
        Query(text="a letter to someone", weights=Weights(section_weight=weight)),
        index,
        KeywordResult(
            matches=index.match(""),
            shared=None,
            close={},
            found=set(),
            keys={},
            likely=[],
            depth=0,
        ),
        VectorResult(
            collection=Points(ITEMS, counts),
            query=VectorQuery(vector=counts.embed_query("letter"), limit=1),
            matches=[*matches, Match(key=item_key("indexed/later"), section=None, score=0.99)],
            calibration=Calibration(),
        ),
    )


@pytest.mark.parametrize(("weight", "cosine"), [(1.0, 0.8), (0.9, 0.72), (0.5, 0.6)])
def test_the_section_weight_is_a_share_of_its_cosine(weight: float, cosine: float) -> None:
    """A section's cosine is multiplied by the weight; the item's own cosine is not."""
    found = gathered((2, 0.8), (None, 0.6), weight=weight)
    assert found.cosine.tolist() == pytest.approx([cosine])


def test_the_first_sentence_has_full_weight() -> None:
    """It is a separate point, but not a section that a hit could name."""
    found = gathered((LEAD, 0.8), (2, 0.8))
    assert found.cosine.tolist() == pytest.approx([0.8])
    assert found.sections == {}


@pytest.mark.parametrize(
    ("scores", "named"),
    [
        ([(2, 0.8), (None, 0.6)], 2),
        ([(2, 0.8), (None, 0.75)], None),
        ([(2, 0.8), (1, 0.7)], 2),
        ([(2, 0.8), (LEAD, 0.75)], None),
    ],
)
def test_a_section_is_named_only_if_it_is_best(
    scores: list[tuple[int | None, float]], named: int | None
) -> None:
    """Its weighted cosine must exceed that of the item, its lead, and other sections."""
    sections = gathered(*scores).sections
    assert [*sections.values()] == ([] if named is None else [named])


def test_an_item_far_from_the_query_has_its_cosine() -> None:
    """A negative cosine is kept."""
    assert gathered((None, -0.3)).cosine.tolist() == pytest.approx([-0.3])
