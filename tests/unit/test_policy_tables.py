"""A change of a `[[policy]]` table does not change one byte of the rest of the file."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repertory.errors import ConfigurationError
from repertory_query.pages.policy_tables import (
    MAX_DOUBTFUL,
    MAX_SIZE,
    changed_lines,
    policies_in,
    with_policy,
    without_policy,
)

FULL = '''\
# The shop's catalogue.
[search]
limit = 7  # enough

[ui]
text = """
[[policy]]
item = "no table"
"""
lists = [
  [1, 2],
  ["[[policy]]"],
]

# Rotations.
[[policy]]   # first
item = "keys"   # by name
boost = 0.5 # why
pin = [
  "rotate",  # often
  "renew",
]

# Old notes.
[[ policy ]]
item = 'notes'
deprecated_by = "new-notes"

[[sources]]
type = "skills"   # ours
'''
EDITED = {"item": "keys", "boost": 0.25, "pin": ["rotate", "renew"], "aliases": ["key swap"]}

PHRASES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1)
POLICY = st.fixed_dictionaries(
    {"item": PHRASES},
    optional={
        "pin": st.lists(PHRASES, max_size=3),
        "boost": st.floats(-1, 1),
        "deprecated_by": PHRASES,
        "when_not_to_use": PHRASES,
    },
)
BETWEEN = st.sampled_from(
    ["\n", "# a comment\n", "[search]\nlimit = 3\n", "[[sources]]\ntype = 'skills'\n", "  \n"]
)


def written(policies: list[dict[str, Any]], between: list[str]) -> str:
    """A file with some policies, each followed by a marker, and other lines before them."""
    text = ""
    for number, policy in enumerate(policies):
        text = with_policy(text, None, policy)
        text += f"# after {number}\n"
    return "".join(dict.fromkeys(between)) + text


def test_a_changed_policy_keeps_its_unchanged_lines() -> None:
    """Comments and lists of several lines are kept."""
    changed = with_policy(FULL, 0, EDITED)
    before, after = FULL.splitlines(), changed.splitlines()
    assert [line for line in before if line not in after] == ["boost = 0.5 # why"]
    assert [line for line in after if line not in before] == [
        "boost = 0.25 # why",
        'aliases = ["key swap"]',
    ]
    assert policies_in(changed)[0] == EDITED


def test_removing_a_policy_keeps_the_comment_of_the_next_one() -> None:
    """Only the lines of its table and an empty line before it are removed."""
    changed = without_policy(FULL, 0)
    assert "# Old notes.\n[[ policy ]]" in changed
    assert [one["item"] for one in policies_in(changed)] == ["notes"]
    start, end = FULL.index("[[policy]]   # first"), FULL.index("\n# Old notes.")
    assert changed == FULL[:start] + FULL[end:]
    assert without_policy(with_policy(FULL, None, EDITED), 2) == FULL


def test_a_missing_field_is_removed() -> None:
    """The other keys of the table stay."""
    assert policies_in(with_policy(FULL, 1, {"item": "notes"}))[1] == {"item": "notes"}


@pytest.mark.parametrize("text", ["", "limit = 1", "limit = 1\n", "# c\r\n"])
def test_a_policy_is_added_at_the_end(text: str) -> None:
    """The existing text is unchanged, and the new lines have the file's line ends."""
    changed = with_policy(text, None, {"item": "keys", "pin": ['say "yes"']})
    assert changed.startswith(text)
    assert policies_in(changed) == [{"item": "keys", "pin": ['say "yes"']}]
    assert ("\r\n" in changed) == ("\r\n" in text)
    assert changed.count("\n") == changed.count("\r\n") or "\r\n" not in text


@given(st.lists(POLICY, min_size=1, max_size=4), st.lists(BETWEEN), POLICY, st.data())
def test_the_rest_of_the_file_is_unchanged(
    policies: list[dict[str, Any]], between: list[str], new: dict[str, Any], data: st.DataObject
) -> None:
    """This holds for any policies of which one is changed or removed."""
    at = data.draw(st.integers(0, len(policies) - 1))
    text = written(policies, between)
    changed = with_policy(text, at, new)
    assert policies_in(changed) == [*policies[:at], new, *policies[at + 1 :]]
    before = f"# after {at - 1}\n" if at else ""
    start = text.index(before) + len(before) if at else 0
    end = text.index(f"# after {at}\n")
    head = text[:start]
    assert changed.startswith(head)
    assert changed.endswith(text[end:])
    assert with_policy(text, at, policies[at]) == text
    removed = without_policy(text, at)
    assert policies_in(removed) == policies[:at] + policies[at + 1 :]
    assert removed.endswith(text[end:])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('policy = [{item = "keys"}]', "by hand"),
        ("policy = 1", "by hand"),
        ("[[policy]]\nitem = ", "not TOML"),
        ("x = '''\n" + "[\n" * (MAX_DOUBTFUL + 1) + "'''\n[[policy]]\nitem = 'keys'", "by hand"),
        ("#" * MAX_SIZE + "\n[[policy]]\nitem = 'keys'", "by hand"),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_refused(text: str, words: str) -> None:
    """The error advises a change by hand, or says that the file is not TOML."""
    with pytest.raises(ConfigurationError, match=words):
        with_policy(text, 0, {"item": "keys", "boost": 0.5})
    with pytest.raises(ConfigurationError, match=words):
        without_policy(text, 0)


def test_removing_a_missing_policy_is_an_error() -> None:
    """Another user may have removed it."""
    with pytest.raises(ConfigurationError, match="by hand"):
        without_policy(FULL, 2)
    assert len(tomllib.loads(FULL)["policy"]) == 2


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_a_change_is_shown_as_a_unified_diff(old: list[str], new: list[str]) -> None:
    """The diff, applied to the old lines at its line number, results in the new lines."""
    lines = changed_lines("\n".join(old), "\n".join(new), "repertory.toml")
    assert bool(lines) == (old != new)
    if not lines:
        return
    assert lines[:2] == ["--- repertory.toml", "+++ repertory.toml"]
    start = int(lines[2].partition("-")[2].partition(",")[0]) - 1
    kept = [line[1:] for line in lines[3:] if line[0] in " -"]
    made = [line[1:] for line in lines[3:] if line[0] in " +"]
    assert old[start : start + len(kept)] == kept
    assert old[:start] + made + old[start + len(kept) :] == new
