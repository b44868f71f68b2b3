"""The keyword index finds the right items, and an updated index equals one built at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.errors import StoreCorruptError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.snapshot import pack, unpack
from repertory.index.vectors import Filter
from tests.support.builders import tool


def index_of(*items: Item) -> KeywordIndex:
    """An index of some items."""
    return KeywordIndex.empty().updated((), items)


def found(index: KeywordIndex, query: str, where: Filter | None = None) -> list[str]:
    """The names that a query finds, best first."""
    rows = index.match(query).best(10, where)
    return [index.entries[row].name for row in rows]


FILES = [
    tool("srv__read_file", "Read the contents of a file"),
    tool("srv__write_file", "Write text to a file", tags=("disk",)),
    tool("srv__send_email", "Send a message to a recipient", source="mail", server="mail"),
    tool("srv__list_calendar_events", "Show the meetings of a day", kind=Kind.SKILL, server=""),
]


def test_a_name_counts_more_than_a_description() -> None:
    """A word in a name leads a word in a description."""
    index = index_of(
        tool("srv__other", "It will export things"), tool("srv__export", "Something else")
    )
    assert found(index, "export") == ["export", "other"]


def test_a_word_with_one_edit_is_corrected() -> None:
    """A misspelt word finds the items of the correct word."""
    assert found(index_of(*FILES), "recipeint")[0] == "send_email"


def test_a_prefix_is_completed() -> None:
    """A prefix of a word finds the items of the whole word."""
    assert found(index_of(*FILES), "calenda")[0] == "list_calendar_events"


def test_parameters_are_searched() -> None:
    """A parameter's name and its description find the tool."""
    schema = {"type": "object", "properties": {"subscriptionId": {"description": "billing"}}}
    index = index_of(*FILES, tool("srv__charge", "Bills", input_schema=schema))
    assert found(index, "subscription") == ["charge"]
    assert found(index, "billing") == ["charge"]


def test_a_body_is_searched_but_counts_least() -> None:
    """A word of the body finds the item, after items that have it in their description."""
    index = index_of(tool("srv__a", body="how to rotate keys"), tool("srv__b", "rotate keys now"))
    assert found(index, "rotate keys") == ["b", "a"]


@pytest.mark.parametrize(
    ("where", "names"),
    [
        (Filter(kinds=("skill",)), ["list_calendar_events"]),
        (Filter(servers=("mail",)), ["send_email"]),
        (Filter(sources=("mail", "nowhere")), ["send_email"]),
        (Filter(tags=("disk",)), ["write_file"]),
        (Filter(tags=("disk",), servers=("mail",)), []),
    ],
)
def test_filters_hold_within_the_search(where: Filter, names: list[str]) -> None:
    """Only items that a filter allows are candidates."""
    assert found(index_of(*FILES), "file message meetings", where) == names


def test_a_score_is_a_share_of_a_perfect_match() -> None:
    """Words that no item contains lower every score."""
    index = index_of(*FILES)
    rows = np.array([index.row_of["srv__read_file"]])
    alone = index.match("read file").scores(rows)[0]
    padded = index.match("read file zebra quantum").scores(rows)[0]
    assert 0.8 < alone <= 1.0
    assert padded < 0.6 * alone


def test_a_query_of_nothing_known_finds_nothing() -> None:
    """Nonsense has no candidates, and an empty index returns none."""
    assert found(index_of(*FILES), "xylophone quux") == []
    assert found(KeywordIndex.empty(), "file") == []


NAMES = st.sampled_from(["alpha beta", "beta gamma", "gamma_delta", "deltaAlpha", "epsilon"])
CHANGES = st.lists(
    st.tuples(st.integers(0, 6), NAMES, st.sampled_from(["", "one two", "two three beta"])),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(CHANGES)
def test_an_index_kept_up_to_date_equals_one_built_at_once(
    changes: list[tuple[int, str, str]],
) -> None:
    """Any order of adding, replacing and removing ends in the same bytes."""
    index = KeywordIndex.empty()
    held: dict[str, Item] = {}
    for number, name, description in changes:
        item = tool(f"srv__{name}", description, id=f"item{number}")
        if item.id in held and held[item.id] == item:
            index = index.updated([item.id], ())
            del held[item.id]
        else:
            index = index.updated((), [item])
            held[item.id] = item
    assert pack(index, 1) == pack(index_of(*held.values()), 1)


def test_a_snapshot_is_restored_unchanged() -> None:
    """Packing and unpacking loses nothing."""
    index, revision, position = unpack(pack(index_of(*FILES), 42, "7"))
    assert (revision, position) == (42, "7")
    assert pack(index, 42) == pack(index_of(*FILES), 42)
    assert found(index, "recipeint")[0] == "send_email"


@pytest.mark.parametrize("damage", [b"", b"rubbish", None])
def test_a_damaged_snapshot_is_refused(damage: bytes | None) -> None:
    """A truncated or overwritten snapshot is never partly read."""
    data = pack(index_of(*FILES), 1)
    with pytest.raises(StoreCorruptError):
        unpack(data[: len(data) // 2] if damage is None else damage)


def test_a_prepared_index_builds_nothing_more() -> None:
    """After that, searches build no more tables."""
    index = index_of(*FILES)
    index.prepare()
    named = (index.names, index.policies, index.postings)
    parts = (index, *named, vars(index)["_lexicon"], vars(index)["_filters"])
    before = [{*vars(part)} for part in parts]
    for query in ("read_file", "recipeint", "calenda", "文", "send a message to someone"):
        found(index, query, Filter(kinds=("tool",), tags=("disk",)))
        index.names.close(query)
        index.policies.promoted(query, [0])
    assert [{*vars(part)} for part in parts] == before
