"""The check of ``doctor`` on the skills that Claude Code lists for its model."""

from collections.abc import Iterator

import msgspec

from repertory.catalogue.item import Item
from repertory_admin.checks.sources import MAX_LISTED, MAX_LISTED_EACH, listing
from tests.support.builders import skill


def described(length: int, path: str, number: int = 1) -> Iterator[Item]:
    """Skills with descriptions of a length, each at a path."""
    for one in range(number):
        yield msgspec.structs.replace(skill(f"s{one}", "d" * length), path=path)


def test_descriptions_beyond_the_budget_are_reported() -> None:
    """The finding has the number of skills and of characters, and names the remedy."""
    many = [
        *described(500, "/home/anna/.claude/skills/a/SKILL.md", 10),
        *described(500, "/project/.claude/commands/b.md", 7),
    ]
    [finding] = listing(many)
    assert "the descriptions of 17 skills have 8,500 characters" in finding.text
    assert "`repertory connect claude-code`" in finding.text


def test_only_what_claude_code_lists_counts() -> None:
    """It cuts each description, and knows no skills of other hosts."""
    fit = MAX_LISTED // MAX_LISTED_EACH
    long = MAX_LISTED_EACH + 1_000
    assert not list(listing(described(long, "/home/anna/.claude/skills/a/SKILL.md", fit)))
    assert not list(listing(described(long, "/project/skills/a/SKILL.md", 100)))
    assert list(listing(described(long, "/home/anna/.claude/skills/a/SKILL.md", fit + 1)))
