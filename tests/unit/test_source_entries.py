"""Changes of configuration files by ``repertory add`` and ``repertory remove``."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.errors import ConfigurationError
from repertory.project.configuration_file import checked, read, write
from repertory_admin.source_entries import names_in, with_entry, without_entry

FULL = """\
# The shop's catalogue.
[search]
limit = 7  # enough

[[sources]]   # ours
type = "skills"
path = 'skills'

# The team's.
[[sources]]
type = "git"
name = "team"
url = "https://h/x"

[[policy]]
item = "deploy"
pin = ["ship it"]  # as agreed
"""
ENTRY = {"type": "git", "url": "https://h/y", "name": "acme", "folder": "a b"}


def comments(text: str) -> set[str]:
    """The comments of a text."""
    return {line.partition("#")[2].strip() for line in text.splitlines() if "#" in line}


def test_an_entry_is_added_after_the_existing_ones() -> None:
    """All other lines stay unchanged, and a blank line precedes each entry."""
    changed = with_entry(FULL, ENTRY)
    assert tomllib.loads(changed)["sources"][2] == ENTRY
    assert set(FULL.splitlines()) <= set(changed.splitlines())
    twice = with_entry(with_entry("", ENTRY), ENTRY | {"name": "b"})
    for text in (changed, twice, with_entry(twice.rstrip(), ENTRY | {"name": "c"})):
        assert all(part.strip() for part in text.split("\n\n"))
        assert '"\n[[' not in text  # a blank line is before each


def test_a_new_file_starts_with_a_comment() -> None:
    """It contains the one source."""
    made = with_entry("", ENTRY)
    assert tomllib.loads(made) == {"sources": [ENTRY]}
    assert made.startswith("# ")
    assert "\n\n[[sources]]\n" in made


@pytest.mark.parametrize("text", ["sources = []\n", 'sources = [{type = "skills", path = "x"}]\n'])
def test_a_list_on_one_line_gets_another_entry(text: str) -> None:
    """The entry is added although ``sources`` is not written as an array of tables."""
    assert tomllib.loads(with_entry(text, ENTRY))["sources"][-1] == ENTRY


def test_an_entry_is_removed_by_its_name() -> None:
    """Adding and removing an entry restores the settings and keeps all comments."""
    assert tomllib.loads(without_entry(with_entry(FULL, ENTRY), "acme")) == tomllib.loads(FULL)
    assert comments(without_entry(with_entry(FULL, ENTRY), "acme")) == comments(FULL)
    assert [one["type"] for one in tomllib.loads(without_entry(FULL, "team"))["sources"]] == [
        "skills"
    ]
    assert tomllib.loads(without_entry(with_entry("", ENTRY), "acme")) == {}
    assert without_entry(FULL, "gone") == FULL


@given(st.dictionaries(st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.text(max_size=30)))
def test_any_value_is_read_back_unchanged(entry: dict[str, str]) -> None:
    """This includes quotes, control characters and line ends."""
    assert tomllib.loads(with_entry(FULL, entry))["sources"][-1] == entry


def test_writing_keeps_the_mode_and_follows_a_link(tmp_path: Path) -> None:
    """If the configuration is a link, its target is changed and the link stays."""
    file = tmp_path / "real.toml"
    file.write_text(FULL)
    file.chmod(0o640)
    (tmp_path / "repertory.toml").symlink_to(file)
    write(tmp_path / "repertory.toml", with_entry(FULL, ENTRY))
    assert (tmp_path / "repertory.toml").is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert tomllib.loads(read(file))["sources"][2] == ENTRY


def test_a_file_with_windows_line_ends_can_be_changed() -> None:
    """The result is valid TOML with the added entry."""
    text = FULL.replace("\n", "\r\n")
    assert tomllib.loads(with_entry(text, ENTRY))["sources"][2] == ENTRY


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    """Some editors write one at the beginning of a file."""
    file = tmp_path / "repertory.toml"
    file.write_text(FULL, "utf-8-sig")
    assert read(file) == FULL
    assert "acme" in names_in(with_entry(read(file), ENTRY))


@pytest.mark.parametrize("text", ["a = 2\n", "a = 1\n[[sources]]\n", "a = 1\nb = 2\n", "a ="])
def test_an_edit_that_changes_anything_else_is_refused(text: str) -> None:
    """The result is compared with the expected content before it is written."""
    before = 'a = 1\n[[sources]]\nname = "x"\n'
    assert checked("a = 1\n", before, "sources", []) == "a = 1\n"
    with pytest.raises(ConfigurationError, match="edit the file by hand"):
        checked(text, before, "sources", [])
