"""How the words of a query are divided, whatever their case and separators."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.index.keywords.query_words import plain, query_words
from repertory.search.query import Query
from tests.support.builders import skill, tool
from tests.support.keyword_search import keyword_engine

PARTS = ["create", "issue", "note", "file", "url", "email", "address", "list", "search", "type"]
identifiers = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4)


@given(st.text(string.ascii_letters + string.digits + "-_. ", max_size=30))
def test_case_is_not_read(text: str) -> None:
    """``AnnData``, ``anndata`` and ``ANNDATA`` are the same words."""
    assert query_words(text) == query_words(text.lower()) == query_words(text.upper())
    assert plain(text) == plain(text.lower()) == plain(text.upper())


@given(identifiers)
def test_separators_and_camel_case_divide_an_identifier_alike(parts: list[str]) -> None:
    """And so do common words, where nothing else divides it."""
    camel = "".join(map(str.title, parts))
    expected = [word.term for word in query_words(" ".join(parts))]
    for text in ("_".join(parts), "-".join(parts), ".".join(parts), camel, camel.lower()):
        assert [word.term for word in query_words(text)] == expected, text
        assert plain(text) == " ".join(parts), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUrl", ["url"]),
        ("objecttypeid", ["object", "type", "id"]),
        ("filename", ["filename"]),  # one usual word
        ("java-script", ["java-script"]),
        ("deploy_k8s_cluster", ["deploy", "k8s", "cluster"]),
        ("zyx8quon", ["zyx", "quon", "zyx8quon"]),
        ("zyx-8quon", ["zyx", "quon", "8quon", "zyx-8quon"]),
        ("S3", ["s3"]),
        ("3.11", ["3", "11"]),
        ("applause", ["applause"]),
        ("zorblax", ["zorblax"]),
        ("the-of", ["the-of"]),
        ("workspacee", ["workspacee"]),  # misspelt; "spacee" has the stem of "space"
        ("errorrate", ["error", "rate"]),
    ],
)
def test_words_of_an_identifier(text: str, expected: list[str]) -> None:
    """A usual word stays whole; unknown words with digits are terms in parts and as a whole."""
    assert [word.text for word in query_words(text)] == expected


def test_the_likeliest_division_wins() -> None:
    """``sendsend`` is no ``sends end``."""
    assert [word.text for word in query_words("sendsend")] == ["send", "send"]


@pytest.mark.parametrize("typed", ["comand", "comands", "invoce", "acount", "workspacee"])
def test_a_misspelt_word_is_not_divided(typed: str) -> None:
    """A letter of a common word was left out or doubled."""
    assert [word.text for word in query_words(typed)] == [typed]


def test_words_of_the_stem_of_another_word_are_corrected() -> None:
    """``recipie`` has the stem of ``recipient``; a plural is corrected as its singular."""
    items = [skill("recipe-scaling", "Scales a dish"), skill("vegetable-stock", "Makes a stock")]
    engine = keyword_engine(items)
    for typed, name in {
        "recipie": "recipe-scaling",
        "recipies": "recipe-scaling",
        "vegtables": "vegetable-stock",
    }.items():
        assert [hit.name for hit in engine.search(Query(text=typed)).hits] == [name], typed


SYMPY = skill("sympy", "Solves integrals and equations")
INTEGRATIONS = [skill(f"vendor{n}-integration", "Connects a vendor") for n in range(70)]


@pytest.mark.parametrize("typed", ["integral", "integrals", "INTEGRALS"])
def test_a_word_as_it_is_typed_comes_before_words_of_the_same_stem(typed: str) -> None:
    """Integrals are no integrations, though they stem alike."""
    hits = keyword_engine([SYMPY, *INTEGRATIONS]).search(Query(text=typed)).hits
    assert hits[0].name == "sympy"
    assert len(hits) > 1


def test_a_word_and_its_plural_are_equal() -> None:
    """Neither ranks a word of the same stem lower."""
    engine = keyword_engine([tool("a__list_issues"), skill("b", "Triages an issue")])
    one, several = (engine.search(Query(text=typed)).hits for typed in ("issue", "issues"))
    assert [hit.id for hit in one] == [hit.id for hit in several]
    confidences = [hit.confidence for hit in (*one, *several)]
    assert confidences[:2] == pytest.approx(confidences[2:], abs=0.02)


@pytest.mark.parametrize(
    ("one", "several"),
    [("tax", "taxes"), ("dish", "dishes"), ("branch", "branches"), ("box", "boxes")],
)
def test_every_plural_is_the_word_itself(one: str, several: str) -> None:
    """Also one with ``es``."""
    engine = keyword_engine([skill("thing", f"About a {one}"), skill(f"{one}-list", "Lists them")])
    found = [engine.search(Query(text=typed)).hits for typed in (one, several)]
    singular, plural = ({hit.name: hit.confidence for hit in hits} for hits in found)
    assert plural == pytest.approx(singular, abs=0.03)


def test_an_identifier_in_a_description_is_found_first_by_its_whole() -> None:
    """Before items whose names have one of its words."""
    items = [
        skill("sdk", "Replaces generateObject"),
        skill("generate-image"),
        skill("object-store"),
    ]
    for typed in ("generateObject", "generateobject", "generate-object"):
        assert keyword_engine(items).search(Query(text=typed)).hits[0].name == "sdk"
