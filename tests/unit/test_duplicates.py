"""Duplicate items are one hit, which names the others."""

import string
from collections.abc import Sequence

import msgspec
import pytest

from repertory.catalogue.item import Item, Kind
from repertory.index.keywords.columns import duplicate_key
from repertory.index.keywords.document import Entry, entry
from repertory.search.duplicates import MAX_DUPLICATES, grouped
from repertory.search.explain import explain
from repertory.search.query import Query
from tests.support.builders import skill, tool
from tests.support.keyword_search import keyword_engine

FORK = "Fork a GitHub repository to your account"
WORDS = " ".join(f"zorb{letter}lax" for letter in string.ascii_lowercase)


def _skill(source: str, description: str, name: str = "review") -> Item:
    return Item(
        id=f"{source}/{name}", kind=Kind.SKILL, name=name, source=source, description=description
    )


def _grouped(entries: Sequence[Entry]) -> list[list[int]]:
    return grouped([duplicate_key(one) for one in entries], entries.__getitem__)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_skill("a", "Review the code"), _skill("b", "Review the code")),
        (_skill("a", "You MUST review the code."), _skill("b", "must review this code")),
        (_skill("a", "Review", "code-review"), _skill("b", "Reviews", "codeReview")),
        (tool("github__fork", FORK), tool("github2__fork", FORK)),
        (tool("wiki__get_links", "Get links"), tool("wiki__wiki_get_links", "Get links")),
        (_skill("a", "word " * 100), _skill("b", "The " + "word " * 100)),
        (_skill("a", f"{WORDS} first"), _skill("b", f"{WORDS} other")),
    ],
)
def test_equal_items_are_duplicates(one: Item, other: Item) -> None:
    """Case, separators, inflection, stop words and the server's name make no difference.

    The end of a long description, which may be cut, makes no difference either.
    """
    assert _grouped([entry(one), entry(other)]) == [[0, 1]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (tool("a__read_file", "Read text"), tool("b__read_file", "Read a file from the cloud")),
        (tool("gitlab__fork", FORK.replace("Hub", "Lab")), tool("github__fork", FORK)),
        (tool("jira__create", "Create an issue"), tool("github__create", "Create an issue")),
        (tool("a__run", ""), tool("a__run_", "")),
        (tool("github__github", FORK), tool("gitlab__gitlab", FORK)),
        (_skill("a", WORDS), _skill("b", WORDS.replace("zorbtlax", "other"))),
        (tool("cal__list_view", "List the events"), tool("cal__list_events", "List the events")),
        (tool("a__review", "Review all the code now"), skill("review", "Review all the code now")),
    ],
)
def test_different_items_are_no_duplicates(one: Item, other: Item) -> None:
    """They differ in words, name or kind, or have general descriptions on different servers."""
    assert _grouped([entry(one), entry(other)]) == [[0], [1]]


def test_a_tool_and_a_skill_are_no_duplicates() -> None:
    """A tool is called, a skill is read."""
    named = (_skill("a", FORK), tool("b__review", FORK))
    assert _grouped([entry(one) for one in named]) == [[0], [1]]


def test_documents_that_only_begin_alike_are_no_duplicates() -> None:
    """The change logs of different projects often have the same beginning."""
    begin = "All notable changes to this project will be documented in this file."

    def log(folder: str, text: str) -> Entry:
        item_id = f"{folder}/CHANGELOG.md"
        kind = Kind.DOCUMENT
        return entry(
            Item(id=item_id, kind=kind, name="Log", source=folder, description=begin, body=text)
        )

    assert _grouped([log("a", "Passkeys"), log("b", "Invoices"), log("c", "Passkeys")]) == [
        [0, 2],
        [1],
    ]


def test_groups_keep_the_order() -> None:
    """Each group is at the position of its first entry."""
    items = [_skill("a", "Review"), _skill("a", "Deploy", "deploy"), _skill("b", "Review")]
    assert _grouped([entry(item) for item in items]) == [[0, 2], [1]]


def test_a_hit_names_its_duplicates_whatever_the_limit() -> None:
    """Duplicates do not count towards the limit."""
    items = [_skill(f"source{number}", "Review the code of a change") for number in range(3)]
    items.append(_skill("other", "Review the text of a change", "proofread"))
    engine = keyword_engine(items)
    for limit in (1, 2, 5):
        hits = engine.search(Query(text="review the code", limit=limit, threshold=0.0)).hits
        assert len(hits) == min(limit, 2)
        assert (hits[0].id, hits[0].duplicates) == (
            "source0/review",
            ("source1/review", "source2/review"),
        )


def test_a_hit_names_a_bounded_number_of_duplicates() -> None:
    """Hundreds of duplicates must not fill an answer."""
    items = [_skill(f"s{number}", "Review the code") for number in range(MAX_DUPLICATES + 5)]
    (hit,) = keyword_engine(items).search(Query(text="review", limit=50, threshold=0.0)).hits
    assert len(hit.duplicates) == MAX_DUPLICATES


def test_explain_names_the_item_that_is_shown_instead() -> None:
    """A duplicate counts as shown, because another item is shown for it."""
    items = [_skill("a", "Review the code"), _skill("b", "Review the code")]
    query = Query(text="review the code", threshold=0.0)
    explanation = explain(keyword_engine(items), query, "b/review")
    assert explanation.shown
    assert explanation.hit.id == "b/review"
    assert explanation.verdict == "Shown as a/review, at place 1 of 1: they are the same."
    assert (
        msgspec.json.decode(msgspec.json.encode(explanation), type=type(explanation)) == explanation
    )
