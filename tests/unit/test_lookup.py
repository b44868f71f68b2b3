"""Items are looked up by id or unique name; for an unknown id, similar ids are suggested."""

import pytest

from repertory.errors import UnknownItemError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Filter
from repertory.search.lookup import MAX_SUGGESTED, close_to, entries, item, row_of
from tests.support.builders import skill, tool
from tests.support.hybrid_search import hybrid_engine

ITEMS = [
    tool("files__read_file", "Read a file"),
    tool("files__read_files", "Read some files"),
    tool("files__write_file", "Write a file"),
    tool("mail__send", "Send a message"),
    skill("mail--send", "How to write"),
]


def index_of(*items: object) -> KeywordIndex:
    """An index of the given items, or of all ITEMS."""
    return KeywordIndex.empty().updated((), items or ITEMS)  # type: ignore[arg-type]


def test_an_item_is_found_by_its_id_or_its_unique_name() -> None:
    """The error for a shared name lists the ids; the error for an unknown name advises a search."""
    assert item(hybrid_engine(ITEMS), "mail__send") == ITEMS[3]
    assert item(hybrid_engine(ITEMS), "write_file") == ITEMS[2]
    with pytest.raises(UnknownItemError, match=r"use files__send or mail__send\.$"):
        item(hybrid_engine([*ITEMS, tool("files__send")]), "send")
    with pytest.raises(UnknownItemError, match=r"^There is no item 'zzqx'; search for it\.$"):
        item(hybrid_engine(ITEMS), "zzqx")


def test_matching_items_are_listed_in_order_of_their_ids() -> None:
    """Without a filter, all items are listed."""
    index = index_of()
    assert [one.id for one in entries(index, Filter(servers=("files",)))] == [
        "files__read_file",
        "files__read_files",
        "files__write_file",
    ]
    assert len(entries(index, Filter())) == len(ITEMS)


def test_without_an_index_nothing_is_suggested() -> None:
    """There may be no index yet."""
    assert close_to(None, "read") == []


def test_an_id_takes_precedence_over_an_equal_name() -> None:
    """A name identifies an item only if no other item has it."""
    index = index_of(skill("send"), tool("a__team/send"), tool("a__post"))
    assert index.entry(row_of(index, "team/send")).id == "team/send"
    assert index.entry(row_of(index, "post")).id == "a__post"
    with pytest.raises(UnknownItemError, match=r"Several items are called 'SEND'; use "):
        row_of(index_of(skill("send"), tool("a__send")), "SEND")


def test_the_error_for_a_shared_name_lists_a_few_ids() -> None:
    """A few examples show which form of id is expected."""
    index = index_of(*(tool(f"server{number}__list") for number in range(9)))
    with pytest.raises(UnknownItemError) as caught:
        row_of(index, "list")
    assert str(caught.value).count("__list") == MAX_SUGGESTED


@pytest.mark.parametrize(
    ("unknown", "close"),
    [
        ("files__read_fil", ["files__read_file", "files__read_files"]),
        ("other__read_file", ["files__read_file", "files__read_files"]),
        ("other/write_file", ["files__write_file"]),
        ("team/read_files", ["files__read_files", "files__read_file"]),
        ("zzqx", []),
    ],
)
def test_the_most_similar_names_are_suggested(unknown: str, close: list[str]) -> None:
    """Ids similar to the whole text are suggested, or else names similar to the name in it."""
    assert close_to(index_of(), unknown)[: len(close) or 1] == close


def test_the_number_of_suggestions_and_the_length_of_the_error_are_bounded() -> None:
    """The error stays short even for a very long id."""
    index = index_of(*(tool(f"a__list_{'x' * number}") for number in range(1, 9)))
    assert len(close_to(index, "list")) == MAX_SUGGESTED
    with pytest.raises(UnknownItemError) as caught:
        row_of(index, "q" * 5_000)
    assert len(str(caught.value)) < 300
