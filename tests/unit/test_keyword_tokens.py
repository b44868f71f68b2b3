"""How text becomes terms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.names import compact_name, split_name
from repertory.index.keywords.tokens import MAX_TERM_LENGTH, terms


@pytest.mark.parametrize("name", ["read_file", "read-file", "readFile", "ReadFile", "READ_FILE"])
def test_a_name_is_the_same_terms_however_it_is_written(name: str) -> None:
    """Case and separators do not distinguish names."""
    assert terms(name) == ["read", "file"]
    assert split_name(name) == "read file"
    assert compact_name(name) == "readfile"


def test_words_are_stemmed() -> None:
    """Forms of one word are one term."""
    assert terms("searching searches searched") == ["search"] * 3


def test_stop_words_are_left_out() -> None:
    """Words of every sentence are not indexed."""
    assert terms("how do I get the file") == ["file"]


def test_scripts_without_spaces_are_split_into_pairs() -> None:
    """Chinese and Japanese are searched by overlapping pairs of characters."""
    assert terms("搜索文件") == ["搜索", "索文", "文件"]
    assert terms("検索tool") == ["検索", "tool"]


def test_accents_do_not_matter() -> None:
    """A word typed without its accents is the same term."""
    assert terms("café") == terms("cafe")


@given(st.text(max_size=200))
def test_any_text_has_terms_without_space_and_of_bounded_length(text: str) -> None:
    """Any text can be tokenised, and no term is too long."""
    for term in terms(text):
        assert term
        assert not term.isspace()
        assert len(term) <= MAX_TERM_LENGTH or not term.isascii()
