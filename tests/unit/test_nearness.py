"""Items that have the common words of a query near each other are found."""

import pytest

from repertory.index.keywords.index import KeywordIndex
from repertory.search.explain import explain
from repertory.search.nearness import NEAR, is_near
from repertory.search.query import Query
from tests.support.builders import skill
from tests.support.growth import grows_too_fast
from tests.support.hybrid_search import hybrid_engine

FAR = "x " * NEAR
EDITOR = skill("editor", "Writing programs", body=f"Open the command palette. {FAR} Save a file.")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("command palette", True),
        ("palette of commands", True),
        ("command file", False),
        ("palette pen", False),  # "open" has these letters
        ("pale command", False),
    ],
)
def test_all_words_must_be_near_each_other(query: str, *, expected: bool) -> None:
    """Inflected forms count, other words that begin alike do not."""
    other = skill("other", "A pen and a pale palette of commands in a file")
    index = KeywordIndex.empty().updated((), [EDITOR, other])
    assert is_near(index.match(query).terms, EDITOR.body) == expected


def test_a_short_word_is_found_after_many_words_that_contain_it() -> None:
    """They do not use up the places that are examined; a part of an identifier counts as well."""
    item = skill("limits", "Who may enter", body=f"{'page ' * 200}getAge limit {'page ' * 200}")
    late = skill("late", "Who may enter", body=f"{'page ' * 200}The age is a limit.")
    index = KeywordIndex.empty().updated((), [item, late])
    assert is_near(index.match("age limit").terms, late.body)
    assert is_near(index.match("age limit").terms, item.body[900:])


@pytest.mark.parametrize("piece", ["age limits", "age", "limit ", "page limit", "a"])
def test_a_search_for_near_words_takes_linear_time(piece: str) -> None:
    """Ten times the text takes about ten times as long."""
    index = KeywordIndex.empty().updated((), [skill("limits", "The age limit")])
    terms = index.match("age limit").terms
    assert not grows_too_fast(lambda text: is_near(terms, text), lambda size: piece * size)


@pytest.mark.parametrize("query", ["cafe menu", "Menü Café", "über ежик", "ΜΕΝΟΎ menu"])
def test_accents_do_not_matter(query: str) -> None:
    """As in all searches for words."""
    item = skill("place", "Where to eat", body="CAFE\u0301 mit Menü über Ёжик, μενού.")
    index = KeywordIndex.empty().updated((), [item])
    assert is_near(index.match(query).terms, item.body)


def test_two_common_words_in_one_sentence_are_found() -> None:
    """If they are far apart, they say little, since most long texts have them."""
    engine = hybrid_engine([EDITOR, skill("garden", "Growing roses", body="Water them.")])
    (hit,) = engine.search(Query(text="command palette")).hits
    assert hit.id == EDITOR.id
    assert 0.36 <= hit.confidence <= 0.41
    assert not engine.search(Query(text="command file")).hits
    assert explain(engine, Query(text="command palette"), EDITOR.id).hit == hit


def test_a_lower_limit_does_not_change_what_explain_says() -> None:
    """A search does not read items that cannot be among its hits, but an explanation does."""
    palette = skill("palette", "The command palette")
    engine = hybrid_engine([EDITOR, palette])
    query = Query(text="command palette", limit=1)
    (first,) = engine.search(query).hits
    assert first.id == palette.id
    explained = explain(engine, query, EDITOR.id)
    assert "a limit of 2 would show it" in explained.verdict
    assert 0.36 <= explained.hit.confidence <= 0.41


def test_a_policy_does_not_make_the_first_hit_depend_on_the_limit() -> None:
    """An item that a policy may raise above the others is read in any case."""
    boosted = skill("editor", "Writing programs", body=EDITOR.body, boost=0.5)
    engine = hybrid_engine([boosted, skill("command", "A terminal")])
    first, second = (
        engine.search(Query(text="command palette", limit=limit)).hits[0].id for limit in (1, 2)
    )
    assert first == second == boosted.id
