"""The measures of a ranking, their intervals, and whether another ranking is better."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory_eval.compare import compare
from repertory_eval.generate import GeneratedQuery
from repertory_eval.labelled import LabelledQuery
from repertory_eval.measure import (
    GENERATED,
    HIDDEN,
    LABELLED,
    MEASURES,
    Figure,
    Found,
    Measures,
    Outcome,
    figures,
    hardest,
    measure,
    outcomes,
)
from repertory_eval.report import _difference, _rounded
from repertory_eval.trial import Trial


def query(text: str, *right: str, tags: tuple[str, ...] = ()) -> LabelledQuery:
    """A query with its right items."""
    return LabelledQuery(id=text, text=text, tags=tags, grades=dict.fromkeys(right, 1))


def alone(*ids: str) -> list[Found]:
    """Hits without duplicates."""
    return [(item,) for item in ids]


def outcome(query: LabelledQuery, found: list[str]) -> Outcome:
    """The measures of a query that found these items."""
    (one,) = measure([query], [alone(*found)])
    return one


def hits(*found: bool) -> list[Outcome]:
    """Queries that each found their item first, or found nothing."""
    return [outcome(query("q", "a"), ["a"] if one else []) for one in found]


def figure(results: list[Outcome], name: str, measures: Measures = GENERATED) -> Figure:
    """The figure of this name."""
    return next(one for one in figures(results, measures) if one.name == name)


def test_every_reported_figure_is_measured() -> None:
    """A figure without values would silently be left out."""
    reported = {*LABELLED.names, *GENERATED.names, LABELLED.graded_by, GENERATED.graded_by}
    assert reported <= {*MEASURES, HIDDEN}


def test_any_right_item_is_a_hit() -> None:
    """A hit needs one of the right items, recall needs all of them."""
    values = outcome(query("q", "a", "b"), ["x", "b"]).values
    assert (values["hit@1"], values["hit@5"], values["recall@3"]) == (0.0, 1.0, 0.5)


def test_a_graded_ranking_has_the_published_figures() -> None:
    """Gains are the grades, discounted by rank; only the first ten hits count."""
    graded = LabelledQuery(id="q", text="q", grades={"a": 3, "b": 2, "c": 1})
    values = outcome(graded, ["b", "x", "a"]).values
    gain = 2 + 3 / math.log2(4)
    assert values["nDCG@10"] == pytest.approx(gain / (3 + 2 / math.log2(3) + 1 / math.log2(4)))
    assert outcome(graded, [*"0123456789", "a"]).values["MRR"] == 0.0


@pytest.mark.parametrize("item", ["\ud800", "a\0b", "é" * 10_000], ids=["surrogate", "NUL", "long"])
def test_any_id_can_be_measured(item: str) -> None:
    """Ids are untrusted input, and the library that computes the figures is written in C."""
    assert outcome(query("q", item), ["a", item]).values["MRR"] == 0.5


@pytest.mark.parametrize("has_threshold", [True, False])
def test_items_hidden_by_the_threshold_are_counted(has_threshold: bool) -> None:
    """Only queries with a right item in the first five count: the threshold hides one of two."""
    everything = {"a": "a", "b": "xb", "c": "", "d": "12345d"}
    results = outcomes(
        [query(text, text) for text in everything],
        lambda text, cut: alone(*("a" if cut and text == "a" else "" if cut else everything[text])),
        lambda _: None,
        has_threshold=has_threshold,
    )
    assert [one.values.get("hidden") for one in results] == [0.0, 1.0, None, None]
    for measures in (GENERATED, LABELLED):
        assert figure(results, "hidden", measures).mean == pytest.approx(1 / 2)
    assert [one.found for one in results][1] == (() if has_threshold else ("x", "b"))


def test_a_figure_without_values_is_left_out() -> None:
    """If nothing is found, nothing can be hidden. Without queries there are no figures."""
    assert "hidden" not in [one.name for one in figures([outcome(query("q", "a"), [])])]
    assert figures([]) == []


def test_a_hit_stands_for_its_duplicates() -> None:
    """A right item in a hit's duplicates counts at this hit, and duplicates are no misses."""
    (one,) = measure([query("q", "a", "b", "c")], [[("x",), ("y", "b", "a"), ("c",)]])
    assert one.found == ("x", "y", "c")
    assert (one.values["MRR"], one.values["recall@3"]) == (0.5, 1.0)
    graded = LabelledQuery(id="q", text="q", grades={"a": 1, "b": 3})
    (best,) = measure([graded], [[("a", "b")]])
    assert best.values["nDCG@10"] == 1.0


@pytest.mark.parametrize(
    ("right", "low", "high"), [(0, 0.0, 0.2775), (5, 0.2366, 0.7634), (10, 0.7225, 1.0)]
)
def test_shares_have_wilsons_interval(right: int, low: float, high: float) -> None:
    """Zero or ten of ten is no certainty. These are the published values for ten observations."""
    one = figure(hits(*[True] * right, *[False] * (10 - right)), "hit@1")
    assert (one.low, one.high) == pytest.approx((low, high), abs=1e-4)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=40))
def test_a_mean_lies_within_its_interval(ranks: list[int]) -> None:
    """For any values, 0 ≤ low ≤ mean ≤ high ≤ 1."""
    results = [outcome(query("q", "a"), [*"x" * (rank - 1), "a"]) for rank in ranks]
    for one in figures(results):
        assert 0.0 <= one.low <= one.mean + 1e-9
        assert one.mean - 1e-9 <= one.high <= 1.0


def test_the_hardest_items_are_seldom_found() -> None:
    """They are listed worst first, each with its worst query, and without items always found."""
    results = [
        outcome(query("good", "a"), ["a"]),
        outcome(query("fair", "b"), ["a", "b"]),
        outcome(query("bad", "b"), ["a", "c"]),
        outcome(query("lost", "c"), []),
    ]
    worst = hardest(results, "MRR", 9)
    assert [(one.item, one.queries, one.mean) for one in worst] == [("c", 1, 0.0), ("b", 2, 0.25)]
    assert worst[1].example.query.text == "bad"
    assert hardest(results, "MRR", 1) == worst[:1]


def test_a_ranking_is_no_better_than_itself() -> None:
    """Every query is the same, so the difference is 0, without an interval, and p is 1."""
    one = compare("MRR", [0.5, 1.0, 0.0], [0.5, 1.0, 0.0])
    assert (one.difference, one.low, one.high, one.p) == (0.0, None, None, 1.0)
    assert (one.better, one.same, one.worse) == (0, 3, 0)


def test_five_wins_of_five_have_a_p_of_one_in_sixteen() -> None:
    """For few differences the permutation test is exact, and it is two-sided."""
    better = compare("hit@1", [0.0] * 5 + [1.0], [1.0] * 6)
    worse = compare("hit@1", [1.0] * 6, [0.0] * 5 + [1.0])
    assert better.p == pytest.approx(2 / 2**5)
    assert worse.p == better.p
    assert (better.better, better.same, better.worse) == (5, 1, 0)
    assert (worse.better, worse.same, worse.worse) == (0, 1, 5)
    assert (better.before, better.after) == pytest.approx((1 / 6, 1.0))
    assert worse.difference == -better.difference
    assert better.low is not None
    assert better.high is not None
    assert (worse.low, worse.high) == (-better.high, -better.low)


def test_one_difference_proves_nothing() -> None:
    """A single query may differ by chance."""
    assert compare("hit@1", [0.0, 1.0], [1.0, 1.0]).p == 1.0


@pytest.mark.parametrize("gains", [[0.1], [0.1, 0.1, 0.1]])
def test_equal_differences_have_no_interval(gains: list[float]) -> None:
    """One pair, or equal differences, say nothing about the variance."""
    before = [0.2, 0.3, 0.7][: len(gains)]
    one = compare("MRR", before, [a + b for a, b in zip(before, gains, strict=True)])
    assert one.difference == pytest.approx(0.1)
    assert (one.low, one.high) == (None, None)
    assert "(" not in _difference(one)
    assert _rounded(one)["low"] is None


def test_the_interval_of_other_measures_uses_the_sample_variance() -> None:
    """The variance of three values is divided by two: 1, 1/2 and 0 have 1/4."""
    results = [outcome(query("q", "a"), found) for found in (["a"], ["x", "a"], [])]
    one = figure(results, "MRR")
    weight = 1.96**2 / 3  # a variance of 1/4 is that of shares of one half
    half = math.sqrt(weight / 4 + weight**2 / 4) / (1 + weight)
    assert (one.low, one.high) == pytest.approx((0.5 - half, 0.5 + half))


def test_a_small_gain_of_nearly_all_queries_is_significant() -> None:
    """Queries are compared in pairs, so differences between queries do not matter."""
    before = [place / 100 for place in range(80)]
    one = compare("nDCG@10", before, [value + 0.02 + value / 1000 for value in before])
    assert one.low is not None
    assert one.high is not None
    assert 0.02 < one.low < one.difference < one.high < 0.021
    assert one.p < 0.001


def test_a_trial_has_figures_by_kind_and_comparisons() -> None:
    """It also has a main figure. Each other setting is compared with the trial."""
    name, typo = query("a", "a", tags=("name",)), query("b", "b", tags=("typo",))
    trial = Trial(
        name="tools",
        is_generated=True,
        results=[outcome(name, ["a"]), outcome(typo, [])],
        others={"alpha=0": [outcome(name, ["a"]), outcome(typo, ["b"])]},
    )
    kinds = trial.kinds()
    assert {kind: (len(one.results), one.figures()[0].mean) for kind, one in kinds.items()} == {
        "name": (1, 1.0),
        "typo": (1, 0.0),
    }
    assert [one.comparisons()["alpha=0"][0].better for one in kinds.values()] == [0, 1]
    main = trial.main()
    assert main is not None
    assert (main.name, main.mean) == ("hit@5", 0.5)
    judged = Trial(name="judged", is_generated=False, results=[], others={"alpha=0": []})
    assert (judged.main(), judged.comparisons()) == (None, {})
    (changed,) = trial.comparisons()["alpha=0"][:1]
    assert (changed.name, changed.difference, changed.better) == ("hit@5", 0.5, 1)


def test_a_trial_has_figures_by_source() -> None:
    """Only generated queries have a source: that of the item that they were made from."""
    found = [
        outcome(GeneratedQuery(id=name, text=name, grades={name: 1}, source=source), hits)
        for name, source, hits in (("a", "team", ["a"]), ("b", "files", []), ("c", "team", []))
    ]
    labelled = outcome(query("d", "d"), ["d"])
    trial = Trial(name="tools", is_generated=True, results=[*found, labelled])
    sources = trial.sources()
    assert {name: (len(one.results), one.figures()[0].mean) for name, one in sources.items()} == {
        "files": (1, 0.0),
        "team": (2, 0.5),
    }
