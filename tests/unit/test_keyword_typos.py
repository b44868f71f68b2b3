"""The typo index finds every string that is one edit away, and no others."""

import string
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from repertory.index.keywords.packed import Strings
from repertory.index.keywords.typos import MIN_LENGTH, OneEdit


def one_edit(words: Iterable[str], min_length: int = MIN_LENGTH) -> OneEdit:
    """A typo index of some words."""
    return OneEdit([Strings.of(sorted(words)).slices], min_length)


WORDS = st.text(alphabet=string.ascii_lowercase + "é文", min_size=1, max_size=20)


@given(words=st.sets(WORDS, max_size=30), typed=WORDS)
def test_exactly_the_words_at_distance_one_are_found(words: set[str], typed: str) -> None:
    """The result equals a comparison with every word, whether or not the typed word is known."""
    expected = sorted(word for word in words if OSA.distance(typed, word) == 1 and len(word) > 2)
    for known in (words, words | {typed}):
        assert one_edit(known).near(typed) == (expected if len(typed) >= MIN_LENGTH else [])


@given(word=st.text(alphabet="abcd", min_size=5, max_size=12), data=st.data())
def test_a_word_is_found_through_any_single_edit(word: str, data: st.DataObject) -> None:
    """One character is removed, added, replaced or swapped at any place."""
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


def test_very_short_words_are_not_corrected() -> None:
    """Too many other words are one edit away from a word of three letters."""
    assert one_edit(["cat", "car", "cart"]).near("cat") == []


def test_short_strings_are_corrected_on_request() -> None:
    """With a lower minimum, names of two or three characters are found."""
    assert one_edit(["qmd", "hn", "todo"], min_length=3).near("qmb") == ["qmd"]
    assert one_edit(["qmd", "hn", "todo"], min_length=3).near("hdn") == ["hn"]
    assert one_edit(["qmd", "hn", "todo"], min_length=3).near("tdo") == ["todo"]


def test_a_very_long_string_is_ignored() -> None:
    """Its length needs more than 16 bits; other strings are still found."""
    assert one_edit(["word", "x" * (2**16 + 4)]).near("wort") == ["word"]
