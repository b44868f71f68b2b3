"""Patterns of ``.gitignore`` match what ``pathspec`` matches, in linear time."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from repertory.sources.reading.patterns import MAX_LENGTH, is_usable, linear, spec_of
from tests.support.growth import grows_too_fast

PARTS = [
    "a",
    "b",
    "*",
    "**",
    "?",
    "a*",
    "*b",
    "*a*",
    "a*b",
    "a*b*a",
    "*a?b",
    "[ab]",
    "[!a]*",
    "a**b",
]
PATTERNS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "!", "/"]),
        st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("/".join),
        st.sampled_from(["", "/"]),
    ),
)
NAMES = st.text("ab.", min_size=1, max_size=5)
PLACES = st.tuples(
    st.lists(NAMES, min_size=1, max_size=5).map("/".join), st.sampled_from(["", "/"])
)


@settings(max_examples=300)
@given(pattern=PATTERNS, place=PLACES.map("".join))
@example(pattern="**/a/**/b/*a*", place="a/x/b/b/ba")
@example(pattern="*a*b", place="aabab")
def test_a_pattern_matches_as_in_pathspec(pattern: str, place: str) -> None:
    """Both give the same verdict and recognise the same folders."""
    theirs, _ = GitIgnoreSpecPattern.pattern_to_regex(pattern)
    if theirs is None:
        return
    ours = linear(theirs)
    one, other = re.match(theirs, place), re.match(ours, place)
    assert bool(one) == bool(other)
    assert (one and one.groupdict()) == (other and other.groupdict())
    spec = GitIgnoreSpec.from_lines([pattern])
    assert spec.check_file(place).include == spec_of([pattern]).check_file(place).include


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("**/*a*/**/*a*/**/*a*b", "a"),
        ("**/" * 200 + "*a" * 50 + "b", "a"),
        ("*a*a*a*a*a*a*a*a*b", "a"),
        ("**/a/**/a/**/a/**/a/**/b", "a/"),
        ("a/**/*/**/*/**/*/**/b", "a/"),
        ("**/*a*/*a*/**/*a*/b", "a/"),
    ],
)
def test_time_grows_with_the_path(pattern: str, part: str) -> None:
    """A hostile pattern takes linear time on paths of 10 and 100 times the size."""
    assert is_usable(pattern)
    spec = spec_of([pattern])

    def place(size: int) -> str:
        return f"{part * size}/{part * size}".replace("//", "/")

    assert not grows_too_fast(spec.check_file, place, (20, 200, 2_000))


def test_an_overlong_pattern_is_left_out() -> None:
    """The length of a pattern is bounded, too. Control characters are not usable."""
    assert not is_usable("a" * (MAX_LENGTH + 1))
    assert not is_usable("a\1b")
