"""Names never fail: however they are typed, they are found."""

import string

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.names import compact_name
from repertory.index.keywords.document import entry
from repertory.index.keywords.names import MOST_BEGUN, ONE_EDIT, NameIndex

WORD = st.text(alphabet=string.ascii_lowercase, min_size=2, max_size=8)
NAME = st.lists(WORD, min_size=2, max_size=4).map("_".join)


def names_of(names: list[str]) -> NameIndex:
    """An index of skills of these names."""
    return NameIndex(
        [entry(Item(id=f"s/{name}", kind=Kind.SKILL, name=name, source="s")) for name in names]
    )


@given(st.lists(NAME, min_size=1, max_size=20, unique_by=compact_name), st.data())
def test_case_and_separators_do_not_matter(names: list[str], data: st.DataObject) -> None:
    """Upper case, spaces, hyphens, camel case or nothing between the words: it is the name."""
    row = data.draw(st.integers(0, len(names) - 1))
    words = names[row].split("_")
    camel = words[0] + "".join(word.title() for word in words[1:])
    for typed in (names[row].upper(), " ".join(words), "-".join(words), "".join(words), camel):
        assert names_of(names).close(typed)[row] == 1.0


@settings(deadline=None)
@given(st.lists(NAME, min_size=1, max_size=20, unique_by=compact_name), st.data())
def test_one_edit_anywhere_finds_the_name(names: list[str], data: st.DataObject) -> None:
    """A letter dropped, added, replaced or swapped leaves the name found, and near the top."""
    row = data.draw(st.integers(0, len(names) - 1))
    name = names[row]
    place = data.draw(st.integers(0, len(name) - 2))
    edited = data.draw(
        st.sampled_from(
            [
                name[:place] + name[place + 1 :],
                name[:place] + "q" + name[place:],
                name[:place] + "q" + name[place + 1 :],
                name[:place] + name[place + 1] + name[place] + name[place + 2 :],
            ]
        )
    )
    assume(len(compact_name(edited)) >= 4)
    assume(OSA.distance(compact_name(edited), compact_name(name)) <= 1)
    assert names_of(names).close(edited)[row] >= ONE_EDIT


@given(NAME, st.data())
def test_a_beginning_finds_the_name_by_the_share_that_was_typed(
    name: str, data: st.DataObject
) -> None:
    """The more of a name was typed, the more it counts."""
    length = data.draw(st.integers(4, len(name)))
    typed = compact_name(name[:length])
    assume(len(typed) >= 4)
    found = names_of([name]).close(typed)[0]
    assert found >= MOST_BEGUN * len(typed) / len(compact_name(name))


def test_an_id_is_a_name_too() -> None:
    """What a result shows as its id can be typed back."""
    assert list(names_of(["code-review"]).close("s/code-review")) == [0]
