"""Laws of answers: a larger limit, more items, and copies hardly change any confidence."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from repertory.catalogue.item import Item
from tests.support.builders import skill, tool
from tests.support.hybrid_search import hybrid_engine
from tests.support.search_laws import (
    BOTH_ARMS,
    Engine,
    catalogues,
    copied,
    few,
    first_confidences,
    items,
    queries,
    search,
)

MAX_DROP = 0.05  # the most by which added items may lower a confidence
DEFAULT = 0.35  # the default threshold


# A larger limit


@BOTH_ARMS
@few
@given(catalogue=catalogues, copies=st.integers(0, 3), text=queries, limit=st.integers(1, 6))
@example(
    catalogue=[tool("term__run_command", "Run a command"), tool("sh__shell", "A shell")],
    copies=1,
    text="commit all my changes to git",
    limit=1,
)
def test_a_larger_limit_only_adds_hits(
    engine: Engine, catalogue: list[Item], copies: int, text: str, limit: int
) -> None:
    """The first hits are the same, with the same confidences, whether direct or inferred."""
    searched = engine([*catalogue, *(copied(catalogue[0], at) for at in range(copies))])
    for threshold in (0.0, DEFAULT):
        all_of_them = search(searched, text, 100, threshold)
        for smaller in (limit, limit + 1, 20):
            assert search(searched, text, smaller, threshold) == all_of_them[:smaller]


def test_a_larger_limit_only_adds_hits_for_a_word_of_many_items() -> None:
    """This holds although more items have the word than the keyword arm chooses as candidates."""
    about = ["trains", "ships", "cars", "planes", "bikes", "trams", "buses", "vans"]
    texts = (" ".join(about[: at % 9]) for at in range(150))
    searched = hybrid_engine(skill(f"item{at}", f"{text} zorblax") for at, text in enumerate(texts))
    all_of_them = search(searched, "zorblax", 100)
    for smaller in (3, 20, 50):
        assert search(searched, "zorblax", smaller) == all_of_them[:smaller]


# More items


@BOTH_ARMS
@few
@given(
    catalogue=st.lists(items(), min_size=1, max_size=4, unique_by=lambda item: item.id),
    crowd=st.lists(items(server="crowd"), max_size=20),
    copies=st.integers(0, 20),
    text=queries,
)
@example(
    catalogue=[skill(f"gke-{word}", f"Kubernetes {word} on GKE") for word in ("scale", "cost")],
    crowd=[tool(f"crowd__k{at}", f"Kubernetes of kind {at}") for at in range(40)],
    copies=0,
    text="kubernetes",
)
@example(
    catalogue=[skill("notes", "Writes a note of zorblax")],
    crowd=[skill(f"zorblax-notes-{at}", "Writes notes of zorblax") for at in range(40)],
    copies=5,
    text="zorblax notes",
)
@example(
    catalogue=[skill("calendar-of-the-whole-week", "Meetings")],
    crowd=[skill(f"calenders{at}", "Other") for at in range(40)],
    copies=5,
    text="calen",
)
@example(
    catalogue=[skill("issue", "Opens an issue")],
    crowd=[skill("türen", "Die Türen öffnen")],
    copies=0,
    text="öffnen issue",
)
def test_more_items_hardly_lower_a_confidence_and_empty_no_answer(
    engine: Engine, catalogue: list[Item], crowd: list[Item], copies: int, text: str
) -> None:
    """The added items may be similar, be copies, or contain the words of the query."""
    before, alone = engine(catalogue), search(engine(catalogue), text)
    added = [*crowd, *(copied(catalogue[at % len(catalogue)], at) for at in range(copies))]
    crowded = engine([*added, *catalogue])
    was = first_confidences(before, text, catalogue)
    now = first_confidences(crowded, text, catalogue)
    for item, one, other in zip(catalogue, was, now, strict=True):
        assert other >= one - MAX_DROP, item.id
    assert not alone or search(crowded, text)


# Duplicates


@BOTH_ARMS
@few
@given(catalogue=catalogues, copies=st.integers(1, 5), text=queries)
def test_copies_of_an_item_are_one_hit_that_names_the_others(
    engine: Engine, catalogue: list[Item], copies: int, text: str
) -> None:
    """No item is shown twice, and every copy is shown or named."""
    first = msgspec.structs.replace(catalogue[0], description="Handles all the issues of one team")
    same = [first, *(copied(first, at) for at in range(copies))]
    hits = search(engine([*same, *catalogue[1:]]), text, limit=50, threshold=0.0)
    shown = [one for hit in hits for one in (hit.id, *hit.duplicates)]
    assert len(shown) == len({*shown})
    ids = {item.id for item in same}
    groups = [{hit.id, *hit.duplicates} for hit in hits if hit.id in ids]
    assert groups in ([], [ids])
