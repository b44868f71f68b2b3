"""Where the words of an item are looked up."""

import string

from hypothesis import example, given
from hypothesis import strategies as st

from repertory.index.keywords.places import Text
from repertory.index.keywords.tokens import Pair, runs, spellings

WORDS = st.one_of(
    st.sampled_from(
        [
            *("LaTeX", "gpt-4o", "read_file", "e-mail", "dying", "skies", "fry", "APIs", "x-ray"),
            *("HTTPServer2", "v2.Beta", "a--b", "Caf\u00e9", "na\u00efve", "stra\u00dfe"),
            *("\u0130stanbul", "\uff21\uff22", "\u691c\u7d22"),
        ]
    ),
    st.text(string.ascii_letters, min_size=1, max_size=6).map(lambda word: f"{word}ying"),
    st.text(string.ascii_letters + string.digits + "-._", min_size=1, max_size=12),
    st.text(min_size=1, max_size=12),
)
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)


def first(pairs: list[Pair], key: str, *, is_written: bool) -> str:
    """What a look at every word finds."""
    return next((one[0] for one in pairs if key == one[0 if is_written else 1]), "")


@given(TEXTS, st.lists(WORDS, max_size=3))
@example("Lying flies, trying skies", ["lie"])
def test_a_word_is_found_as_by_reading_all_words(text: str, others: list[str]) -> None:
    """Although most words are neither divided nor stemmed."""
    pairs = [pair for run in runs(text) for pair in spellings(run)]
    found = Text(text)
    assert found.words() == pairs
    keys = {*others} | {key for pair in pairs for key in pair}
    for key in keys:
        for is_written in (False, True):
            wanted = first(pairs, key, is_written=is_written)
            assert found.spelling(key, is_written=is_written) == wanted


def test_every_short_word_begins_as_its_stem() -> None:
    """All words of four letters or fewer, and the ones that end in ``ying``."""
    letters = string.ascii_lowercase
    words = [a + b + c for a in letters for b in ("", *letters) for c in ("", *letters)]
    words += [f"{word}ying" for word in words]
    for word in words:
        for written, term in spellings(word):
            assert Text(word).spelling(term, is_written=False) == written
