"""Claims of tools about their effects become tags for filters, not searchable words."""

import msgspec
import pytest

from repertory.catalogue.item import Item
from repertory.catalogue.safety import claims, safety
from repertory.index.keywords.document import entry, term_weights
from repertory.index.keywords.places import Places
from repertory.search.query import Query, filter_of
from tests.support.builders import skill, tool
from tests.support.keyword_search import keyword_engine

READS = tool("disk__read_file", "Read a file", tags=("read-only",))
WRITES = tool("disk__write_file", "Write a file", tags=("destructive",))
COPIES = tool("disk__copy_file", "Copy a file")


@pytest.mark.parametrize(
    ("annotations", "tags"),
    [
        ({"readOnlyHint": True}, ("read-only",)),
        ({"readOnlyHint": True, "destructiveHint": False}, ("read-only",)),
        ({"readOnlyHint": True, "destructiveHint": True}, ("read-only",)),
        ({"destructiveHint": True}, ("destructive",)),
        ({"readOnlyHint": False, "destructiveHint": True}, ("destructive",)),
        ({"readOnlyHint": "yes", "destructiveHint": True}, ("destructive",)),
        ({"readOnlyHint": False}, ()),
        ({"destructiveHint": False}, ()),
        ({"readOnlyHint": None, "destructiveHint": None}, ()),
        ({"readOnlyHint": "true", "destructiveHint": 1}, ()),
        ({"readOnlyHint": [True], "destructiveHint": {}}, ()),
        ({"title": "Reads", "idempotentHint": True}, ()),
        ({}, ()),
        *((value, ()) for value in (None, "readOnlyHint", ["readOnlyHint"], 3, True)),
    ],
)
def test_only_explicit_annotations_become_claims(
    annotations: object, tags: tuple[str, ...]
) -> None:
    """The protocol's defaults do not count, and a read-only tool is never destructive."""
    assert claims(annotations) == tags


def test_a_harmless_tool_is_safer_than_an_unknown_one() -> None:
    """An unknown tool is safer than a destructive one."""
    tags = [("read-only",), (), ("other",), ("destructive",), ("destructive", "other")]
    assert [safety(one) for one in tags] == [0, 1, 1, 2, 2]


@pytest.mark.parametrize("item", [READS, WRITES])
def test_claims_are_not_searchable_words_of_a_tool(item: Item) -> None:
    """Otherwise they would match every query with these words; they are shown and filtered by."""
    shown = entry(item)
    assert shown.tags == item.tags
    assert term_weights(item) == term_weights(tool(item.id, item.description))
    for whole in (item, None):
        assert not {"read-only", "destructive"} & {*Places(shown, whole).words()}
        assert not {"destruct", "onli"} & {*Places(shown, whole).words()}


def test_tags_chosen_by_an_author_are_searchable_words() -> None:
    """A skill's tag ``destructive`` is a word; so are a tool's tags that are not claims."""
    about = msgspec.structs.replace(skill("cleaning", "Clean up"), tags=("destructive",))
    assert "destruct" in term_weights(about)
    assert "disk" in term_weights(tool("a__b", tags=("disk", "read-only")))


@pytest.mark.parametrize(
    ("tag", "names"),
    [("read-only", ["read_file"]), ("destructive", ["write_file"]), ("none", [])],
)
def test_claims_can_be_filtered_by(tag: str, names: list[str]) -> None:
    """They filter like other tags, and the hits show them."""
    engine = keyword_engine([READS, WRITES, COPIES])
    hits = engine.search(Query(text="file", threshold=0.0, where=filter_of(tags=[tag]))).hits
    assert [hit.name for hit in hits] == names
    assert all(hit.tags == (tag,) for hit in hits)
