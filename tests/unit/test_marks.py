"""Long runs of combining marks take linear time, although Python sorts them in quadratic time."""

import sys
import unicodedata
from collections.abc import Callable

import pytest

from repertory.catalogue.names import folded, split_name
from repertory.index.keywords.document import term_weights
from repertory.index.keywords.tokens import terms
from repertory.project_search import file
from repertory.text import normalized
from repertory.typescript.syntax import pascal
from tests.support.builders import skill
from tests.support.growth import grows_too_fast

# The two marks of a run have different classes, the higher one first, so that they must be sorted.
RUNS = {
    "accents": ("\u0301", "\u0323"),
    "points": ("\u05bc", "\u05b0"),
    "kana": ("\uff9e", "\u0334"),
    "tibetan": ("\u0f74", "\u0f73"),
}
JOINED = "\u0615" * 30 + "\u0640" + "\u0618" * 30 + "\u0640"  # folding removes the letter U+0640


def marks_of(first: str, second: str) -> Callable[[int], str]:
    """A function that makes a text with each mark repeated `size` times."""
    return lambda size: f"e{first * size}{second * size}a"


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("call", [folded, split_name, terms, file.folded, pascal])
def test_marks_take_linear_time(call: Callable[[str], object], run: str) -> None:
    """This applies to the marks of several scripts."""
    assert not grows_too_fast(call, marks_of(*RUNS[run]))


def test_runs_that_folding_joins_take_linear_time() -> None:
    """The letter between two runs is removed before the text is composed."""
    assert not grows_too_fast(folded, lambda size: "a" + JOINED * (size // 10))


def test_the_weights_of_an_item_with_marks_take_linear_time() -> None:
    """The marks are in the item's description and its body."""
    assert not grows_too_fast(
        lambda text: term_weights(skill("a", description=text, body=text)),
        marks_of(*RUNS["accents"]),
    )


def test_only_marks_after_thirty_others_are_removed() -> None:
    """Letters, spaces and other characters stay, regardless of their number."""
    marks = "\u0301" * 30
    text = f"e{marks}\u2014{marks} {'-' * 50}\u2014{marks}\u0323\u0323x\u0323"
    assert normalized("NFKD", text) == f"e{marks}\u2014{marks} {'-' * 50}\u2014{marks}x\u0323"
    assert normalized("NFC", "e\u0301") == "\u00e9"


def test_every_combining_character_counts_as_a_mark() -> None:
    """This includes each character whose decomposition begins with a mark."""
    for letter in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.combining(unicodedata.normalize("NFKD", letter)[0]):
            assert normalized("NFC", letter * 31) == normalized("NFC", letter * 30), letter
