"""Cleaning texts, describing spans of time, and caching results for texts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.text import (
    MAX_REMEMBERED_LENGTH,
    ago,
    clean,
    is_clean,
    remembered,
    with_whole_characters,
)

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "IGNORE ALL PREVIOUS")
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"


@pytest.mark.parametrize(
    "text",
    [
        "visible" + TAGS,
        "\U0001f3f4" + TAGS + "\U000e007f",  # too long for a flag
        SCOTLAND + TAGS,
        "user\u202etxt.exe",
        "\u2066a\u2069",
        "ro\u200btate",
        "ro\u200d\u200ctate",
        "so\u00adft",
        "\ufeffa\u2060b",
        "a" + "\ufe01\ufe02\ufe03",
        "\u2764" + "\ufe0f\ufe0e\ufe0f",
        "\u4e2d" + "\U000e0101\U000e0102",
        "\u0645\u06cc" + "\u200c\u200d\u200c",
        "a" + "\u200e\u200f\u200f\u200e",
        "\u05d0" + "\u061c\u200b" * 4,
        "\u0623" + "\u061c\ufe0f" * 4,
        "a" + "\u180b\u180c\u180d",
        "a" + "\U0001d173\U0001d17a",
        "a" + "\U0001bca0\ufff0",
    ],
)
def test_invisible_characters_are_removed(text: str) -> None:
    """Characters that models read but people cannot see are removed; visible text stays."""
    assert not is_clean(text)
    cleaned = clean(text)
    assert len(cleaned) < len(text)
    assert [one for one in text if one.isalnum()] == [one for one in cleaned if one.isalnum()]


@pytest.mark.parametrize(
    "text",
    [
        SCOTLAND,
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian
        "\u0915\u094d\u200d\u0937",  # Hindi
        "\u0e01\u200b\u0e02",  # Thai
        "\U0001f469\u200d\U0001f4bb",
        "\u2764\ufe0f\u200d\U0001f525",
        "1\ufe0f\u20e3",
        "\u26a0\ufe0f Do not",
        "\u845b\U000e0101",  # a variant of an ideograph
        "\u05d0\u200f!",
        "\u200f\u05d0 C#\u200e",
        "\u1820\u180b",  # Mongolian
        "caf\u00e9\n\ttab",
    ],
)
def test_joiners_and_selectors_stay_where_they_have_an_effect(text: str) -> None:
    """Some scripts and emoji need them."""
    assert clean(text) == text
    assert is_clean(text)


@given(
    st.text(
        alphabet=st.sampled_from(
            [
                *"a1#\u0627\u061c\u1820\u180b\u200b\u200d\u200e\u4e2d\ufe0f\ufe01",
                *"\x07\ufeff",
                *SCOTLAND,
            ]
        )
    )
)
def test_cleaning_is_idempotent(text: str) -> None:
    """A cleaned text is clean."""
    assert is_clean(clean(text))


def test_a_span_of_time_has_its_largest_unit() -> None:
    """It has one unit, and is "just now" below a second."""
    shown = [ago(seconds) for seconds in (0, 0.9, 1, 59, 60, 7_300, 200_000)]
    assert shown == [
        *("just now", "just now", "1 second ago", "59 seconds ago", "1 minute ago"),
        *("2 hours ago", "2 days ago"),
    ]


def test_a_span_of_time_can_have_a_smallest_unit() -> None:
    """A page that shows minutes changes less often than one that shows seconds."""
    shown = [ago(seconds, least=60) for seconds in (59, 60, 7_300)]
    assert shown == ["just now", "1 minute ago", "2 hours ago"]


def test_results_are_cached_only_for_short_texts() -> None:
    """Long texts, such as encoded data, would fill the memory."""
    computed = []

    @remembered
    def length(text: str) -> int:
        computed.append(text)
        return len(text)

    short, long = "a" * MAX_REMEMBERED_LENGTH, "b" * (MAX_REMEMBERED_LENGTH + 1)
    assert [length(one) for one in (short, short, long, long)] == [100, 100, 101, 101]
    assert computed == [short, long, long]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"a\ud83d"', "a\ufffd"),
        (r'"\uDE00b"', "\ufffdb"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\ud83d\uD83D\uDE00"', "\ufffd\U0001f600"),
        (r'"\\ud83d"', "\\ud83d"),
        (r'"\\\ud83d"', "\\\ufffd"),
    ],
)
def test_half_of_a_surrogate_pair_in_json_is_replaced(written: str, read: str) -> None:
    """Whole pairs stay, and an escaped backslash does not start an escape."""
    assert json.loads(with_whole_characters(written.encode())) == read


@given(st.text())
def test_json_without_lone_surrogates_stays(text: str) -> None:
    """Escaped and unescaped characters stay unchanged."""
    for ascii_only in (True, False):
        written = json.dumps(text, ensure_ascii=ascii_only).encode("utf-8", "replace")
        assert with_whole_characters(written) == written


@pytest.mark.parametrize("text", [r'"\ud8', r'"\ud83', r'"\ud8zz"', "\\", r"\Ud83d", "\xe9"])
def test_invalid_escapes_stay(text: str) -> None:
    """Invalid JSON is not repaired."""
    written = text.encode("latin-1")
    assert with_whole_characters(written) == written
