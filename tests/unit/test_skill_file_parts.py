"""The parts of a skill file that are embedded beside the whole of it."""

from hypothesis import given
from hypothesis import strategies as st

from repertory.skill_vectors.parts import SHORTEST, TOKEN, parts
from tests.support.skill_files import ADD, AREA, VOLUME


@given(
    text=st.text(),
    name=st.sampled_from(["a.md", "a.ns.txt", "a.py"]),
    tokens=st.integers(min_value=1, max_value=50),
)
def test_nothing_of_a_text_is_lost(text: str, name: str, tokens: int) -> None:
    """The parts make up the text, and none is longer than a model reads."""
    found = parts(name, text, tokens)
    assert "".join(found) == (text if found else "")
    for part in found:
        assert len(part.encode()) <= max(TOKEN, 4) * tokens


def test_each_procedure_is_a_part() -> None:
    """A NeuroScript file of several procedures is found by any of them; one alone is whole."""
    assert parts("math.ns.txt", ADD + AREA + VOLUME, 256) == [ADD, AREA, VOLUME]
    assert parts("math.ns.txt", ADD, 256) == []
    assert parts("math.txt", ADD + AREA, 256) == []


def test_each_section_is_a_part() -> None:
    """A Markdown file begins a part at a heading, unless the one before is too short."""
    text = "x" * SHORTEST + "\n"
    title, one, two = f"# Title\n{text}", f"## One\n{text}### Deeper\n{text}", f"## Two\n{text}"
    assert parts("guide.md", title + one + two, 256) == [title, one, two]
    assert parts("guide.md", "# Title\n" + one + two, 256) == [f"# Title\n{one}", two]


def test_long_texts_are_cut_at_their_lines() -> None:
    """So is any other file, at as many lines as the model reads at once."""
    lines = [f"{number:>29}\n" for number in range(100)]
    found = parts("notes.txt", "".join(lines), 100)
    assert found == ["".join(lines[start : start + 10]) for start in range(0, 100, 10)]
