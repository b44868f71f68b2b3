"""Reasons name the matched words, their fields and their corrections."""

import pytest

from repertory.search.answer import Hit, Term
from repertory.search.query import Query
from tests.support.builders import tool
from tests.support.keyword_search import keyword_engine

SCHEMA = {"type": "object", "properties": {"timezone": {"type": "string"}}}
LONG = "Converts times between places of the world. " * 12
ITEMS = [
    tool(
        "clock__convert_time",
        "Tells what hour it is elsewhere",
        tags=("travel",),
        input_schema=SCHEMA,
    ),
    tool(
        "world__shift",
        LONG,
        input_schema={"type": "object", "properties": {"meridian": {"type": "string"}}},
    ),
]


def first(text: str) -> Hit:
    """The best hit of a search."""
    return keyword_engine(ITEMS).search(Query(text=text, threshold=0.0)).hits[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("convert this for me now please", "Keywords in name (convert)"),
        ("which hour will there be", "Keywords in description (hour)"),
        ("anything about travel by ship", "Keywords in description (travel)"),
        ("a clock for the wall please", "Keywords in server (clock)"),
        ("whatever the timezone may happen to be", "Keywords in parameters (timezone)"),
        ("convert the hour of our lunch", "Keywords in name and description (convert, hour)"),
        (
            "convert the hour by timezone for lunch",
            "Keywords in name, description and parameters (convert, hour, timezone)",
        ),
        ("convert_times", "Fuzzy name match (convert_times → convert_time)"),
        (
            "hour convert time",
            "Fuzzy name match (hour convert time → convert_time) + keywords in description (hour)",
        ),
        ("convrt this for me now please", "Keywords in name (convrt → convert)"),
        ("the timezoen of our lunch please", "Keywords in parameters (timezoen → timezone)"),
    ],
)
def test_a_reason_names_the_fields_of_matched_words(text: str, reason: str) -> None:
    """The most important field of each word is named, and corrections are shown."""
    assert first(text).reason == reason


def test_a_reason_does_not_guess_the_field_of_a_word() -> None:
    """The description of the entry may be cut."""
    hit = first("the meridian of our lunch please")
    assert hit.id == "world__shift"
    assert hit.reason == "Keywords (meridian)"
    assert hit.evidence.terms == (Term(typed="meridian", matched="meridian"),)
