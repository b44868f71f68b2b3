"""Inflected forms of a word count as the word; other words with the same stem count less."""

from itertools import product

import pytest

from repertory.index.keywords.inflections import are_forms
from repertory.index.keywords.tokens import term_of
from repertory.search.query import Query
from tests.support.builders import tool
from tests.support.keyword_search import keyword_engine


@pytest.mark.parametrize(
    "forms",
    [
        "invoice invoices invoiced invoicing",
        "track tracks tracked tracking",
        "bill bills billed billing",
        "run runs running",
        "try tries tried trying",
        "process processes processed processing",
        "box boxes boxed boxing",
        "cancel cancelled canceled cancelling",
        "agree agrees agreed agreeing",
        "deploy deploys deployment deployments",
        "status statuses",
        "string strings",
        "meeting meetings",
        "setting settings",
        "api apis",
        "wiki wikis",
    ],
)
def test_all_inflections_of_a_word_are_forms_of_each_other(forms: str) -> None:
    """Any two inflections of the same word are forms of it, in either order."""
    assert all(are_forms(*pair) for pair in product(forms.split(), repeat=2))


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("customs", "customers"),
        ("object", "objective"),
        ("import", "important"),
        ("read", "readings"),
        ("files", "filings"),
        ("set", "settings"),
        ("pypi", "pypy"),
    ],
)
def test_different_words_with_the_same_stem_are_not_forms(word: str, other: str) -> None:
    """The stemmer gives both words the same term."""
    assert term_of(word) == term_of(other)
    assert not are_forms(word, other)
    assert not are_forms(other, word)


def found(query: str, *names: str) -> dict[str, float]:
    """The hits, as confidences by name, among tools whose names are also their descriptions."""
    tools = [tool(f"srv__{name}", name.replace("_", " ")) for name in names]
    hits = keyword_engine(tools).search(Query(text=query)).hits
    return {hit.name: hit.confidence for hit in hits}


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("tracking", "track_parcel"),
        ("invoicing", "send_invoice"),
        ("scheduled", "schedule_visit"),
        ("refunded", "refund_payment"),
    ],
)
def test_a_form_of_a_word_counts_as_the_word(typed: str, name: str) -> None:
    """A typed form matches a name that contains the stem or another form."""
    assert found(typed, name, "water_plants")[name] >= 0.8


@pytest.mark.parametrize(
    ("typed", "name", "other"),
    [
        ("customs", "declare_customs", "greet_customers"),
        ("import", "import_rows", "list_important_dates"),
        ("object", "move_object", "weekly_objectives"),
        ("readings", "sensor_readings", "read_file"),
        ("listings", "new_listing", "list_boards"),
    ],
)
def test_another_word_of_the_same_stem_counts_less(typed: str, name: str, other: str) -> None:
    """This also applies if the typed word, or its singular, equals its stem."""
    confidence = found(typed, name, other)
    assert confidence[name] >= 0.8
    assert confidence.get(other, 0.0) < 0.6


def test_both_spellings_of_a_word_are_found_together() -> None:
    """A second item with the other spelling does not lower the confidence of the first."""
    alone = found("color", "colour_grading")
    both = found("color", "colour_grading", "color_palette")
    assert both["colour_grading"] == alone["colour_grading"] >= 0.8
    assert both["color_palette"] >= 0.8
    digits = "count_digits"
    assert found("digitize", "digitise_photo", digits)["digitise_photo"] >= 0.8
