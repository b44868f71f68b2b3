"""Changes are found by hashes, and failures are never treated as deletions."""

from hypothesis import given
from hypothesis import strategies as st

from repertory.catalogue.item import Item, Kind
from repertory.index.vectors import State
from repertory.indexing.diff import diff


def item(item_id: str, description: str = "", source: str = "s") -> Item:
    """A skill with this id."""
    return Item(id=item_id, kind=Kind.SKILL, name=item_id, source=source, description=description)


def states(*items: Item) -> dict[str, State]:
    """The states of some indexed items."""
    return {
        one.id: State(
            item=one.id,
            source=one.source,
            content_hash=one.content_hash(),
            metadata_hash=one.metadata_hash(),
            revision=1,
        )
        for one in items
    }


def by_id(*items: Item) -> dict[str, Item]:
    """Items by their ids."""
    return {one.id: one for one in items}


def test_added_changed_and_removed_are_distinguished() -> None:
    """An unchanged item is in none of the lists."""
    changes = diff(
        by_id(item("same"), item("new"), item("edited", "after")),
        states(item("same"), item("edited", "before"), item("gone")),
    )
    assert [one.id for one in changes.written] == ["new", "edited"]
    assert changes.removed == ["gone"]


def test_a_source_that_failed_keeps_its_items() -> None:
    """A failure is not a deletion."""
    changes = diff(
        by_id(item("a")),
        states(item("a"), item("b", source="server")),
        lambda state: state.source == "server",
    )
    assert changes.removed == []


def test_an_item_that_could_not_be_read_is_kept() -> None:
    """A broken file is not a deletion."""
    changes = diff(by_id(item("a")), states(item("a"), item("b")), lambda state: state.item == "b")
    assert changes.removed == []


def test_an_item_of_an_unavailable_source_wins_over_its_namesake() -> None:
    """It is kept if it has precedence; otherwise the item that was read replaces it."""
    read, there = by_id(item("a", source="second")), states(item("a", source="first"))
    changes = diff(read, there, holds=lambda state, other: state.source != other.source)
    assert (changes.written, changes.removed) == ([], [])
    assert diff(read, there).written == [read["a"]]


def test_a_suddenly_empty_source_keeps_its_items() -> None:
    """An unmounted folder does not empty the index; a rebuild accepts the empty scan."""
    there = states(item("a"), item("b", source="mounted"))
    assert diff(by_id(item("a")), there).removed == []
    assert diff(by_id(item("a")), there).emptied == {"mounted"}
    assert diff(by_id(item("a")), there, prune=True).removed == ["b"]


def test_a_source_that_failed_is_not_suddenly_empty() -> None:
    """Its items are kept, and it is not reported as empty."""
    changes = diff(
        {}, states(item("a"), item("b", source="server")), lambda state: state.item == "b"
    )
    assert changes.emptied == {"s"}
    assert changes.removed == []


def test_a_source_whose_items_were_not_read_again_is_not_empty() -> None:
    """A source without changed files is not read again."""
    there = states(item("a"), item("b"))
    changes = diff({}, there, lambda state: state.item == "a", others=["s"])
    assert (changes.emptied, changes.removed) == (frozenset(), ["b"])


def test_removed_items_are_in_order() -> None:
    """The order in the store does not matter."""
    there = states(*(item(name) for name in "dbca"), *(item(n, source="t") for n in "hfge"))
    changes = diff(by_id(item("x")), there)
    assert changes.removed == ["a", "b", "c", "d"]


def test_changes_that_failed_before_are_left_out() -> None:
    """A change of an item to the same version, or its removal, is not tried again."""
    offered = by_id(item("new"), item("edited", "after"), item("fine"))
    there = states(item("edited", "before"), item("gone"), item("left"))
    hashes = {one.id: one.metadata_hash() for one in offered.values()}
    changes = diff(offered, there)
    assert changes.without({}) is changes
    left = changes.without({"new": hashes["new"], "edited": hashes["edited"], "gone": ""})
    assert ([one.id for one in left.written], left.removed) == (["fine"], ["left"])
    other = changes.without({"new": "another", "edited": "", "gone": "another"})
    assert (other.written, other.removed) == (changes.written, changes.removed)


IDS = st.sets(st.sampled_from("abcdef"))


@given(before=IDS, after=IDS)
def test_applying_the_changes_makes_the_index_equal_the_source(
    before: set[str], after: set[str]
) -> None:
    """The index with additions and without removals equals the source."""
    changes = diff(by_id(*map(item, after)), states(*map(item, before)), prune=True)
    result = (before | {one.id for one in changes.written}) - set(changes.removed)
    assert result == after
    again = diff(by_id(*map(item, after)), states(*map(item, after)), prune=True)
    assert not again.written
    assert not again.removed
