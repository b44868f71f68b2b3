"""The data that the encoder is trained on: its form, its licences, and what is kept out of it."""

from collections import Counter

import pytest

from training.dataset import DATA, Item, Part, Query, items, only, queries
from training.overlap import near, normal

LICENCES = {
    *("MIT", "ISC", "Apache-2.0", "BSD-3-Clause", "MPL-2.0", "CC0-1.0", "CC-BY-3.0", "CC-BY-4.0"),
}
STYLES = set("kvrcsaptue")
TEST_SERVERS = {"brave-search", "kubernetes", "pdf", "trello"}


@pytest.fixture(scope="module")
def of() -> dict[str, Item]:
    """The items by id."""
    return items()


@pytest.fixture(scope="module")
def asked() -> list[Query]:
    """The queries."""
    return queries()


def test_every_query_has_its_item(of: dict[str, Item], asked: list[Query]) -> None:
    """No query stands twice, in whatever case and with whatever punctuation."""
    assert {query.item for query in asked} <= of.keys()
    assert max(Counter(normal(query.text) for query in asked).values()) == 1
    assert {query.style for query in asked} == STYLES
    assert all(query.text.strip() for query in asked)


def test_every_item_says_where_it_is_from_and_is_open(of: dict[str, Item]) -> None:
    """A package with its version, or a repository with its commit and path."""
    assert {item.licence for item in of.values()} <= LICENCES
    for item in of.values():
        kind, _, source = item.provenance.partition(":")
        assert kind in {"npm", "PyPI", "github"}, item
        assert "@" in source, item


def test_the_test_has_whole_servers_and_a_fifth_of_the_skills(
    of: dict[str, Item], asked: list[Query]
) -> None:
    """None of their queries is trained on."""
    assert {item.server for item in of.values() if item.part is Part.TEST} >= TEST_SERVERS
    assert not {item.server for item in of.values() if item.part is not Part.TEST} & TEST_SERVERS
    skills = {q.item for q in asked if q.origin == "written" and of[q.item].kind == "skill"}
    share = sum(of[item].part is Part.TEST for item in skills) / len(skills)
    assert 0.19 <= share <= 0.22
    trained = only(Part.TRAIN, asked, of)
    assert len(trained) > 0.9 * len(asked)
    assert all(of[query.item].part is Part.TRAIN for query in trained)


def test_a_nearly_equal_query_is_found() -> None:
    """Other order, punctuation and case; but not just the same subject."""
    ours = ["rename a to do list", "list the open pull requests of my team"]
    assert near([normal("Rename to-do list!")], ours) == [("rename to do list", ours[0])]
    assert near(["close the open pull requests of another team today"], ours) == []


def test_the_datasheet_has_the_numbers(of: dict[str, Item], asked: list[Query]) -> None:
    """Its counts are those of the files."""
    text = " ".join((DATA / "DATASHEET.md").read_text("utf-8").split())
    assert f"`queries.jsonl`: {len(asked):,} queries" in text
    assert f"`items.jsonl`: {len(of):,} real items" in text
