"""The weights of a search."""

import pytest

from repertory.catalogue.item import Item, Kind, item_key
from repertory.embedding.models import Calibration
from repertory.errors import UsageError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Match
from repertory.search.answer import Mode
from repertory.search.candidates import Words, gather
from repertory.search.query import Query, Weights
from tests.support.keyword_search import keyword_engine

ITEMS = [
    Item(id="tools/resize-images", kind=Kind.SKILL, name="resize-images", source="tools"),
    Item(id="tools/mail", kind=Kind.SKILL, name="mail", source="tools"),
]


def test_the_name_weight_raises_items_with_a_similar_name() -> None:
    """Two edits from a name the weight raises the confidence; without it words decide."""
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


def test_the_section_weight_is_a_share_of_its_cosine() -> None:
    """A section's cosine is multiplied by the weight, the item's own cosine is not."""
    mail = item_key("tools/mail")
    nearest = [Match(key=mail, section=2, score=0.8), Match(key=mail, section=None, score=0.6)]
    index = KeywordIndex.empty().updated((), ITEMS)
    none = index.match("")

    def cosine(weight: float) -> float:
        found = gather(
            Query(text="a letter to someone", weights=Weights(section_weight=weight)),
            index,
            words=Words(matches=none, rows=[], close={}),
            also=[],
            nearest=nearest,
            cosines_of=lambda _: {},
            calibration=Calibration(),
            mode=Mode.HYBRID,
        )
        return float(found.cosine[0])

    assert cosine(1.0) == pytest.approx(0.8)
    assert cosine(0.9) == pytest.approx(0.72)
    assert cosine(0.5) == pytest.approx(0.6)
