"""The parts of a skill file that are embedded in addition to the whole."""

from hypothesis import given
from hypothesis import strategies as st

from repertory.skill_vectors.parts import BYTES_PER_TOKEN, MIN_LENGTH, parts
from tests.support.skill_files import ADD, AREA, VOLUME


@given(
    text=st.text(),
    name=st.sampled_from(["a.md", "a.ns.txt", "a.py"]),
    tokens=st.integers(min_value=1, max_value=50),
)
def test_no_text_is_lost(text: str, name: str, tokens: int) -> None:
    """The joined parts equal the text, and no part exceeds the model's limit."""
    found = parts(name, text, tokens)
    assert "".join(found) == (text if found else "")
    for part in found:
        assert len(part.encode()) <= max(BYTES_PER_TOKEN, 4) * tokens


def test_each_procedure_of_several_is_a_part() -> None:
    """Only NeuroScript files with more than one procedure are split."""
    assert parts("math.ns.txt", ADD + AREA + VOLUME, 256) == [ADD, AREA, VOLUME]
    assert parts("math.ns.txt", ADD, 256) == []
    assert parts("math.txt", ADD + AREA, 256) == []


def test_each_section_is_a_part() -> None:
    """A Markdown file is split at headings, unless the previous part is too short."""
    text = "x" * MIN_LENGTH + "\n"
    title, one, two = f"# Title\n{text}", f"## One\n{text}### Deeper\n{text}", f"## Two\n{text}"
    assert parts("guide.md", title + one + two, 256) == [title, one, two]
    assert parts("guide.md", "# Title\n" + one + two, 256) == [f"# Title\n{one}", two]


def test_long_texts_are_cut_at_line_ends() -> None:
    """A file of any type is split after as many whole lines as fit the model's limit."""
    lines = [f"{number:>29}\n" for number in range(100)]
    found = parts("notes.txt", "".join(lines), 100)
    assert found == ["".join(lines[start : start + 10]) for start in range(0, 100, 10)]
