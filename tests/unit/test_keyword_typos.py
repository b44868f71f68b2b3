"""Finds every string one edit away, and no others."""

import string
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from repertory.index.keywords.packed import Strings
from repertory.index.keywords.typos import MIN_LENGTH, OneEdit


def one_edit(words: Iterable[str], min_length: int = MIN_LENGTH) -> OneEdit:
    """Finds some words."""
    return OneEdit([Strings.of(sorted(words)).slices], min_length)


WORDS = st.text(alphabet=string.ascii_lowercase + "é文", min_size=1, max_size=20)


@given(words=st.sets(WORDS, max_size=30), typed=WORDS)
def test_finds_just_the_words_at_distance_one(words: set[str], typed: str) -> None:
    """The result equals a comparison with every word; the typed one may be among them."""
    expected = sorted(word for word in words if OSA.distance(typed, word) == 1 and len(word) > 2)
    for known in (words, words | {typed}):
        assert one_edit(known).near(typed) == (expected if len(typed) >= MIN_LENGTH else [])


@given(word=st.text(alphabet="abcd", min_size=5, max_size=12), data=st.data())
def test_finds_a_word_through_any_single_edit(word: str, data: st.DataObject) -> None:
    """A character dropped, added, replaced or swapped anywhere still finds the word."""
    place = data.draw(st.integers(0, len(word) - 2))
    edits = [
        word[:place] + word[place + 1 :],
        word[:place] + "z" + word[place:],
        word[:place] + "z" + word[place + 1 :],
        word[:place] + word[place + 1] + word[place] + word[place + 2 :],
    ]
    index = one_edit([word])
    for edited in edits:
        assert index.near(edited) == ([] if edited == word else [word])


def test_leaves_very_short_words_alone() -> None:
    """One edit of a word of three letters makes too many other words."""
    assert one_edit(["cat", "car", "cart"]).near("cat") == []


def test_short_strings_are_corrected_on_request() -> None:
    """A name of two or three characters is found if one edit leaves three."""
    assert one_edit(["qmd", "hn", "todo"], min_length=3).near("qmb") == ["qmd"]
    assert one_edit(["qmd", "hn", "todo"], min_length=3).near("hdn") == ["hn"]
    assert one_edit(["qmd", "hn", "todo"], min_length=3).near("tdo") == ["todo"]


def test_a_very_long_string_is_no_word() -> None:
    """Its length has more than 16 bits; it is not found, and those beside it are."""
    assert one_edit(["word", "x" * (2**16 + 4)]).near("wort") == ["word"]
