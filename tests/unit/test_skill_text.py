"""Skills written as ``SKILL.md`` can be read by a strict YAML parser."""

import datetime

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.formats.skill_text import defect, front_matter, skill_text
from repertory.text import clean
from tests.support.builders import skill

ODD = ["yes", "No", "null", "~", "1", "1.5", "1e3", "0o17", "2026-09-01", "- a", "a: b", "a #b"]
ODD += [
    "Use when: x",
    "'a'",
    '"a"',
    "[a]",
    "{a}",
    "*a",
    "&a",
    "!a",
    "%a",
    "@a",
    "|",
    ">",
    "=",
    "<<",
]
ODD += [
    "a\nb",
    "a\tb",
    " a ",
    "a,",
    "---",
    "...",
    "Grüße 🎉",
    "a\u2028b",
    "a\x85b",
    "true",
    "",
    "a/b.",
]
texts = st.sampled_from(ODD) | st.text(max_size=12).map(clean)
values = st.recursive(
    texts | st.booleans() | st.none() | st.integers(-(2**53), 2**53),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def skill_of(**extra: object) -> Item:
    """A skill with further fields in its front matter."""
    return msgspec.structs.replace(skill("told", body="Steps."), extra=extra)


@given(texts, st.dictionaries(texts, values, max_size=4))
def test_any_front_matter_is_read_back_unchanged(
    description: str, extra: dict[str, object]
) -> None:
    """No text becomes a date, a number or a comment."""
    item = msgspec.structs.replace(skill_of(**extra), description=description)
    opening, front, body = skill_text(item).split("---\n", 2)
    assert not opening
    assert body == "\nSteps."
    assert yaml.safe_load(front) == front_matter(item)


def test_plain_words_stay_plain() -> None:
    """Only values that need quotes have them."""
    item = skill_of(license="Apache-2.0", version="1.0", released=str(datetime.date(2026, 9, 1)))
    assert skill_text(item).splitlines()[1:6] == [
        "name: told",
        "description: Of told",
        "license: Apache-2.0",
        'version: "1.0"',
        'released: "2026-09-01"',
    ]


def test_known_fields_have_the_types_of_the_format() -> None:
    """Values of other types are converted, because strict readers refuse them."""
    given = skill_of(
        **{"allowed-tools": ["Read", "Bash(git:*)"], "license": None, "compatibility": 3},
        metadata={"version": 1.1, "on": True, "tags": ["a"], "author": "Me"},
        other=[1],
    )
    assert front_matter(given) == {
        "name": "told",
        "description": "Of told",
        "allowed-tools": "Read Bash(git:*)",
        "compatibility": "3",
        "metadata": {"version": "1.1", "on": "true", "tags": "a", "author": "Me"},
        "other": [1],
    }


def test_tags_and_policies_are_written_as_fields() -> None:
    """A tag that the metadata contains is not repeated in ``tags``."""
    item = msgspec.structs.replace(
        skill("told", boost=0.2, aliases=("said",)),
        tags=("git", "ops"),
        extra={"metadata": {"tags": "ops"}},
    )
    assert front_matter(item) == {
        "name": "told",
        "description": "Of told",
        "metadata": {"tags": "ops"},
        "tags": ["git"],
        "boost": 0.2,
        "aliases": ["said"],
    }


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, ""),
        ({"name": "a" * 64}, ""),
        ({"name": "a" * 65}, "name"),
        ({"name": "a--b"}, "name"),
        ({"name": "-a"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "翻訳"}, "name"),
        ({"name": "мой-навык-2"}, "name"),
        ({"name": "Résumé"}, "name"),
        ({"name": "翻訳!"}, "name"),
        ({"description": "x" * 1_024}, ""),
        ({"description": "x" * 1_025}, "description"),
        ({"description": ""}, "description"),
        ({"extra": {"compatibility": "x" * 501}}, "compatibility"),
        ({"extra": {"compatibility": ""}}, "compatibility"),
        ({"extra": {"metadata": "x"}}, "metadata"),
    ],
)
def test_a_violation_of_the_format_is_a_defect(changed: dict[str, object], reason: str) -> None:
    """The message names the wrong field."""
    found = defect(msgspec.structs.replace(skill("told"), **changed))
    assert reason in found if reason else not found
    assert skill("told").kind is Kind.SKILL
