"""Confidence follows the scores: high if one item fits, low if many fit a little."""

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.search.answer import Mode
from repertory.search.confidence import confidences, scores
from repertory.search.engine import Ranked
from repertory.search.query import Query
from tests.support.keyword_search import keyword_engine

JOBS = ["resize pictures", "send invoices", "rotate secrets", "deploy clusters", "draw charts"]
PLACES = ["in berlin", "for customers", "at night", "with care"]


def items(*names: str, server: str = "") -> list[Item]:
    """Tools that are described by their names."""
    return [
        Item(
            id=f"{server}{number}",
            kind=Kind.TOOL,
            name=name.replace(" ", "_"),
            source="s",
            server=server,
            description=f"Can {name}",
        )
        for number, name in enumerate(names)
    ]


CATALOGUE = items(*(f"{job} {place}" for job in JOBS for place in PLACES))


def rank(text: str, of: list[Item], without: tuple[str, ...] = ()) -> Ranked:
    """The ranked candidates of a query."""
    return keyword_engine(of).rank(Query(text=text), exclude=without).texts[0]


def first_confidence(text: str, of: list[Item]) -> float:
    """The confidence of the best candidate."""
    return float(rank(text, of).confidence.max(initial=0.0))


words = st.sampled_from(" ".join([*JOBS, *PLACES, "zebra", "please show"]).split())


@settings(deadline=None, max_examples=50)
@given(st.lists(words, min_size=1, max_size=9).map(" ".join))
def test_confidence_is_a_share_that_falls_with_the_score(text: str) -> None:
    """Of two items whose names were not typed, the better match has more confidence."""
    found = rank(text, CATALOGUE).candidates
    score = scores(found)
    confidence = confidences(found, score)
    assert ((confidence >= 0) & (confidence < 1)).all()
    plain = (found.close == 0) & (found.shared == 0)
    score, sure = score[plain], confidence[plain]
    order = score.argsort()
    assert (sure[order][1:] >= sure[order][:-1] - 1e-6).all()


def test_one_that_fits_is_surer_than_one_of_many() -> None:
    """The same words are weaker evidence if ten items contain them."""
    few = items("rotate old secrets", *JOBS)
    many = items("rotate old secrets", *(f"rotate {place} secrets" for place in "abcdefghijkl"))
    asked = "rotate the secrets please"
    assert first_confidence(asked, few) > first_confidence(asked, many) + 0.1


def test_copies_of_one_item_do_not_make_it_unsure() -> None:
    """Items of one name count once: ten servers with it do not hide it."""
    others = items(*(f"{job} {number}" for job in JOBS[1:] for number in range(200)))
    copies = [
        one for server in "abcdefghij" for one in items("resize huge pictures", server=server)
    ]
    asked = "make huge pictures smaller and resize them"
    alone = first_confidence(asked, [*copies[:1], *others])
    assert first_confidence(asked, [*copies, *others]) > alone - 0.2


def test_a_sure_first_hit_does_not_lift_distant_items() -> None:
    """Beside an exact name, an item that shares one word with it keeps a low confidence."""
    found = rank("rotate_secrets", items("rotate secrets", "rotate tyres in the garage", *JOBS[3:]))
    by_name = {
        found.candidates.entry(place).name: float(found.confidence[place]) for place in found.order
    }
    assert by_name["rotate_secrets"] >= 0.98
    assert by_name.get("rotate_tyres_in_the_garage", 0.0) < 0.35


def test_a_margin_is_worthless_with_hardly_any_evidence() -> None:
    """A long request for another catalogue shares only one word with one item."""
    text = " ".join(["Please resize", *["what no one here has ever heard of"] * 8])
    found = rank(text, items("resize pictures", *JOBS[1:])).candidates
    shares = np.array([0.04 if "resize" in found.entry(0).name else 0.0], np.float32)

    def first(semantic: float) -> float:
        hybrid = msgspec.structs.replace(
            found,
            mode=Mode.HYBRID,
            semantic=np.full(len(found.rows), semantic, np.float32),
            keyword=shares,
        )
        return float(confidences(hybrid, scores(hybrid)).max())

    assert first(0.1) < 0.35 < first(0.5)


def test_an_excluded_item_is_as_if_it_were_not_indexed() -> None:
    """Neither the arms nor the names find it."""
    gone = CATALOGUE[0]
    found = rank(gone.name, CATALOGUE, without=(gone.id,)).candidates
    assert gone.id not in [found.entry(place).id for place in range(len(found.rows))]
