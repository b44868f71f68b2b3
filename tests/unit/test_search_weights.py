"""The weights of a search do what they say."""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import pytest

from repertory.catalogue.item import Item, Kind, item_key
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.models import Calibration
from repertory.errors import ModelError, UsageError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Match
from repertory.search.answer import Mode
from repertory.search.candidates import Words, gather
from repertory.search.engine import SearchEngine
from repertory.search.query import Query, Weights

INDEX = KeywordIndex.empty().updated(
    (),
    [
        Item(id="tools/resize-images", kind=Kind.SKILL, name="resize-images", source="tools"),
        Item(id="tools/mail", kind=Kind.SKILL, name="mail", source="tools"),
    ],
)


def no_model() -> EmbeddingEngine:
    """There is none."""
    raise ModelError("no model")


@pytest.fixture
def reader() -> Iterator[Executor]:
    """Runs the keyword arm."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def test_the_name_weight_is_what_a_like_name_adds(reader: Executor) -> None:
    """Two edits away from a name, its weight raises the confidence; without it words decide."""
    engine = SearchEngine(keywords=INDEX, collection=None, reader=reader, embedding=no_model)

    def confidence(weight: float) -> float:
        query = Query(text="resise imagess", threshold=0.0, weights=Weights(name_weight=weight))
        return engine.search(query).hits[0].confidence

    assert confidence(0.0) < confidence(0.4) < confidence(1.0)


@pytest.mark.parametrize("wrong", [{"name_weight": 1.1}, {"section_weight": -0.1}])
def test_weights_are_shares(reader: Executor, wrong: dict[str, float]) -> None:
    """A weight below 0 or above 1 is refused by name."""
    engine = SearchEngine(keywords=INDEX, collection=None, reader=reader, embedding=no_model)
    with pytest.raises(UsageError, match=next(iter(wrong))):
        engine.search(Query(text="mail", weights=Weights(**wrong)))


def test_the_section_weight_is_a_share_of_its_cosine() -> None:
    """A section's cosine counts as much of itself as the weight says, the item's own counts all."""
    mail = item_key("tools/mail")
    nearest = [Match(key=mail, section=2, score=0.8), Match(key=mail, section=None, score=0.6)]
    none = INDEX.match("")

    def cosine(weight: float) -> float:
        found = gather(
            Query(text="a letter to somebody", weights=Weights(section_weight=weight)),
            INDEX,
            words=Words(matches=none, rows=[], close={}, is_word=False, of_names=none),
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
