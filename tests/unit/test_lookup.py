"""Items are looked up by id or unique name, and similar ones are suggested for an unknown id."""

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
    """An index of these items, or of all."""
    return KeywordIndex.empty().updated((), items or ITEMS)  # type: ignore[arg-type]


def test_an_item_is_returned_whole() -> None:
    """By its id, or by a name that no other item has."""
    assert item(hybrid_engine(ITEMS), "mail__send") == ITEMS[3]
    assert item(hybrid_engine(ITEMS), "write_file") == ITEMS[2]
    with pytest.raises(UnknownItemError, match=r"use files__send or mail__send\.$"):
        item(hybrid_engine([*ITEMS, tool("files__send")]), "send")
    with pytest.raises(UnknownItemError, match=r"^There is no item 'zzqx'; search for it\.$"):
        item(hybrid_engine(ITEMS), "zzqx")


def test_the_items_that_a_filter_allows_are_listed_by_id() -> None:
    """All of them without a filter."""
    index = index_of()
    assert [one.id for one in entries(index, Filter(servers=("files",)))] == [
        "files__read_file",
        "files__read_files",
        "files__write_file",
    ]
    assert len(entries(index, Filter())) == len(ITEMS)


def test_without_an_index_nothing_is_suggested() -> None:
    """Nothing may be indexed yet."""
    assert close_to(None, "read") == []


def test_an_id_identifies_its_item_though_another_is_called_like_it() -> None:
    """A name does if no other item has it."""
    index = index_of(skill("send"), tool("a__team/send"), tool("a__post"))
    assert index.entry(row_of(index, "team/send")).id == "team/send"
    assert index.entry(row_of(index, "post")).id == "a__post"
    with pytest.raises(UnknownItemError, match=r"Several items are called 'SEND'; use "):
        row_of(index_of(skill("send"), tool("a__send")), "SEND")


def test_of_many_items_of_one_name_a_few_are_listed() -> None:
    """They are examples of what to say."""
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
    """Those like the whole id, or else like the name in it."""
    assert close_to(index_of(), unknown)[: len(close) or 1] == close


def test_a_few_items_are_suggested_for_a_long_id() -> None:
    """The message stays short."""
    index = index_of(*(tool(f"a__list_{'x' * number}") for number in range(1, 9)))
    assert len(close_to(index, "list")) == MAX_SUGGESTED
    with pytest.raises(UnknownItemError) as caught:
        row_of(index, "q" * 5_000)
    assert len(str(caught.value)) < 300
