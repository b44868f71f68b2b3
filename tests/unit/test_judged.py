"""Metrics of judged pairs: how well confidence predicts grades, and how good shown hits are."""

import pytest

from repertory.catalogue.item import Item, Kind
from repertory.search.query import Query
from repertory_eval.judged import Observed, by_tag, judge, stated
from repertory_eval.labelled import LabelledQuery
from tests.support.keyword_search import keyword_engine


def observed(
    pairs: dict[str, tuple[int, float]],
    *shown: str | tuple[str, ...],
    tags: tuple[str, ...] = (),
) -> Observed:
    """A query with the grade and the stated probability of each judged item, and with its hits."""
    return Observed(
        query=LabelledQuery(
            id="q", text="q", tags=tags, grades={item: grade for item, (grade, _) in pairs.items()}
        ),
        shown=[(hit,) if isinstance(hit, str) else hit for hit in shown],
        stated={item: probability for item, (_, probability) in pairs.items()},
    )


def test_the_calibration_error_is_computed_per_bin() -> None:
    """It is 0 if nine of ten items with 0.9 are good, and 0.9 if the only such item is not good."""
    nine = {str(number): (3 if number else 0, 0.9) for number in range(10)}
    assert judge([observed(nine)]).error == pytest.approx(0.0, abs=1e-9)
    assert judge([observed({"a": (1, 0.9)})]).error == pytest.approx(0.9)
    apart = {"a": (3, 0.65), "b": (0, 0.05)}  # the gaps of two bins add up, regardless of sign
    assert judge([observed(apart)]).error == pytest.approx((0.35 + 0.05) / 2)
    neighbours = {"a": (3, 0.65), "b": (0, 0.75)}  # bins are a tenth wide
    assert judge([observed(neighbours)]).error == pytest.approx((0.35 + 0.75) / 2)
    together = {"a": (3, 0.62), "b": (0, 0.68)}
    assert judge([observed(together)]).error == pytest.approx(abs(0.62 + 0.68 - 1) / 2)


def test_auc_is_measured_only_if_there_are_good_and_bad_pairs() -> None:
    """One of the two bad pairs is above the good one, so AUC and precision are a half."""
    both = judge([observed({"a": (2, 0.5), "b": (1, 0.7), "c": (0, 0.2)})])
    assert (both.auc, both.precision) == (0.5, 0.5)
    none = judge([observed({"a": (1, 0.5)})])
    assert (none.auc, none.precision, none.nothing_good) == (None, None, None)


def test_shown_hits_are_counted_separately_for_queries_without_an_answer() -> None:
    """An unjudged hit is neither good nor bad, and a hit is as good as its best duplicate."""
    good, bad = {"a": (2, 0.6), "b": (1, 0.4)}, {"a": (1, 0.3)}
    figures = judge(
        [
            observed(good, "b", ("copy", "a")),
            observed(good, "b"),
            observed(good, "unjudged"),
            observed(bad),
            observed(bad, "unjudged"),
        ]
    )
    assert (figures.queries, figures.answerable, figures.pairs) == (5, 3, 8)
    assert figures.nothing_good == pytest.approx(2 / 3)
    assert figures.rejected == pytest.approx(1 / 2)
    assert figures.good == pytest.approx(1 / 3)
    assert figures.unjudged == pytest.approx(2 / 5)


def test_the_metrics_of_a_tag_cover_its_queries() -> None:
    """A query counts for each of its tags."""
    tagged = by_tag(
        [
            observed({"a": (0, 0.1)}, tags=("word", "short")),
            observed({"a": (3, 0.9)}, tags=("word",)),
        ]
    )
    assert {tag: one.queries for tag, one in tagged.items()} == {"short": 1, "word": 2}
    assert tagged["short"].rejected == 1.0


def test_pairs_that_a_search_would_not_show_also_have_a_probability() -> None:
    """The engine rates the judged items by id; unknown ids are left out."""
    names = ("resize_image", "send_mail")
    engine = keyword_engine(
        [Item(id=name, kind=Kind.TOOL, name=name, source="s", description=name) for name in names]
    )
    found = stated(engine, Query(text="resize"), [*names, "gone"])
    assert found.keys() == {*names}
    assert found["resize_image"] > found["send_mail"] >= 0.0


def test_a_query_whose_good_items_are_not_indexed_is_not_answerable() -> None:
    """No search could find these items."""
    grades = {"resize_image": 0, "gone": 3}
    query = LabelledQuery(id="q", text="resize", grades=grades)
    assert not Observed(query=query, shown=[], stated={"resize_image": 0.9}).is_answerable
