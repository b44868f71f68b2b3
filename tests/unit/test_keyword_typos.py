"""Finds every string one edit away, and no others."""

import string

from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from repertory.index.keywords.typos import MIN_LENGTH, OneEdit

WORDS = st.text(alphabet=string.ascii_lowercase + "é文", min_size=1, max_size=14)


@given(words=st.sets(WORDS, max_size=30), typed=WORDS)
def test_finds_just_the_words_at_distance_one(words: set[str], typed: str) -> None:
    """The result equals a comparison with every word."""
    expected = sorted(word for word in words if OSA.distance(typed, word) == 1 and len(word) > 2)
    assert OneEdit(words).near(typed) == (expected if len(typed) >= MIN_LENGTH else [])


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
    index = OneEdit([word])
    for edited in edits:
        assert edited == word or index.near(edited) == [word]


def test_leaves_very_short_words_alone() -> None:
    """One edit of a word of three letters makes too many other words."""
    assert OneEdit(["cat", "car", "cart"]).near("cat") == []


def test_short_strings_are_corrected_on_request() -> None:
    """A name of two or three characters is found if one edit leaves three."""
    assert OneEdit(["qmd", "hn", "todo"], min_length=3).near("qmb") == ["qmd"]
    assert OneEdit(["qmd", "hn", "todo"], min_length=3).near("hdn") == ["hn"]
    assert OneEdit(["qmd", "hn", "todo"], min_length=3).near("tdo") == ["todo"]
