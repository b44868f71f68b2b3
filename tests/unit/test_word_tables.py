"""Tables that find the terms of a vocabulary by a character, for scripts without spaces."""

from hypothesis import given
from hypothesis import strategies as st

from repertory.index.keywords.packed import Strings
from repertory.index.keywords.tokens import is_unspaced
from repertory.index.keywords.word_tables import WordTables

TERMS = st.text(alphabet="aé文件ファ𠀀", min_size=1, max_size=4)


@given(terms=st.sets(TERMS, max_size=30))
def test_short_terms_are_found_by_each_of_their_characters(terms: set[str]) -> None:
    """The result equals a check of every term."""
    found = WordTables(Strings.of(sorted(terms))).with_character
    short = [term for term in sorted(terms) if len(term) <= 2 and is_unspaced(term)]
    assert found == {
        character: [term for term in short if character in term]
        for character in set("".join(short))
    }
