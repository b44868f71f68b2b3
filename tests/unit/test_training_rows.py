"""The rows for training the encoder."""

import random
from collections import Counter
from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from repertory.catalogue.names import compact_name
from training.dataset import Item, Part, Query
from training.mine import Vectors, alike, mine
from training.misspelt import misspelt
from training.rows import rows
from training.triggers import trigger


def item(
    name: str, description: str = "", *, server: str = "", group: str = "x", part: str = "train"
) -> Item:
    """An item of training."""
    return Item(
        id=f"{server or group}/{name}",
        kind="tool" if server else "skill",
        server=server,
        name=name,
        description=description,
        licence="MIT",
        provenance=f"github:{group}@1:{name}",
        part=Part(part),
    )


@pytest.mark.parametrize(
    ("description", "clause", "rest"),
    [
        (
            "Write quotes for building work. Use when the user asks for a quote or an offer.",
            "the user asks for a quote or an offer",
            "Write quotes for building work",
        ),
        (
            "Guides work with a build tool. This skill should be used when adding a task, "
            "or speeding up a build. Do not use for other tools.",
            "adding a task, or speeding up a build",
            "Guides work with a build tool",
        ),
        (
            "Plays chess and studies games. Triggers: opening, endgame study",
            "opening, endgame study",
            "Plays chess and studies games",
        ),
        (
            "Reviews changes for security. Use PROACTIVELY when a login page changes. It is slow.",
            "a login page changes",
            "Reviews changes for security",
        ),
        (
            "Writes tests for code. Don't use for long documents. Use for files that don't build, "
            "i.e. errors etc. and missing tests, see `ci` for others.",
            "files that don't build, i.e. errors etc. and missing tests",
            "Writes tests for code. Don't use for long documents",
        ),
    ],
)
def test_a_trigger_is_separated_from_the_description(
    description: str, clause: str, rest: str
) -> None:
    """Introductions such as "Use when", exclusions, and references to other skills are cut."""
    found = trigger(item("quote", description))
    assert found is not None
    assert (found.clause, found.rest) == (clause, rest)


def test_the_elements_of_a_trigger_are_the_entries_of_its_list() -> None:
    """Only entries of three or more words are elements."""
    description = "Looks after a house. Use for paying the gas bill, mowing, or calling a plumber."
    found = trigger(item("house", description))
    assert found is None
    found = trigger(item("house", description.replace(".", " and a garden.", 1)))
    assert found is not None
    assert found.elements == ["paying the gas bill", "calling a plumber"]


@pytest.mark.parametrize(
    "one",
    [
        item("a", "Writes quotes for all kinds of building work."),
        item("b", "Use when the user asks for a quote or for an offer. Use when a bid is late."),
        item("c", "Writes quotes for houses. Use when asked for an offer or a bid.", server="s"),
        item(
            "d",
            "Writes quotes for houses. Use when asked for an offer or a bid.",
            group="openclaw/skills",
        ),
    ],
)
def test_some_descriptions_have_no_trigger(one: Item) -> None:
    """No trigger, only triggers, tools, and collections used for evaluation are left out."""
    assert trigger(one) is None
    assert (
        trigger(item("e", "Writes quotes for houses. Use when asked for an offer or a bid."))
        is not None
    )


@given(st.text(alphabet="abcdefgh_-XYZ", min_size=1, max_size=30), st.integers())
@example("---_X", 0)
def test_a_misspelt_name_has_at_most_one_foreign_letter(name: str, seed: int) -> None:
    """It is also never empty."""
    found = misspelt(name, random.Random(seed))
    assert found.strip() or not compact_name(name).strip("_-")
    # Without letters, as after ``---_X``, the compact name consists of separators.
    left = {*filter(str.isalpha, compact_name(found))} - {*compact_name(name)}
    assert len(left) <= 1


def test_negatives_are_near_but_never_right() -> None:
    """They are other servers' items and siblings, without duplicates and held-out items."""
    chance = np.random.default_rng(3)
    texts = chance.normal(size=(200, 16)).astype(np.float32)
    texts[1] = texts[0] + 0.01  # nearly the same as the right one, of another server
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    items = [item(f"t{n}", server=f"s{n % 10}") for n in range(200)]
    items[7] = item("t7", server="s7", part="test")
    ((others, siblings),) = mine(texts[:1], [0], items, texts, alike(items, texts))
    assert 0 < len(others) <= 6
    assert 0 < len(siblings) <= 6
    assert {items[n].server for n in siblings} == {"s0"}
    assert "s0" not in {items[n].server for n in others}
    assert not {0, 1, 7} & {*others, *siblings}
    scores = texts @ texts[0]
    assert scores[others[0]] == max(
        scores[n] for n in range(200) if items[n].server != "s0" and n not in (1, 7)
    )


def test_without_siblings_items_of_other_servers_replace_them() -> None:
    """This happens for the only tool of a server."""
    chance = np.random.default_rng(3)
    texts = chance.normal(size=(100, 16)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    items = [item(f"t{n}", server=f"s{n}") for n in range(100)]
    ((others, siblings),) = mine(texts[:1], [0], items, texts, alike(items, texts))
    assert others == siblings


def by_letters(texts: Sequence[str]) -> Vectors:
    """A base model whose vectors are normalised counts of letters."""
    counts = [[text.lower().count(letter) + 0.01 for letter in ascii_lowercase] for text in texts]
    vectors: Vectors = np.array(counts, np.float32).reshape(-1, len(ascii_lowercase))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def test_rows_of_a_pass_have_every_query_every_trigger_and_names() -> None:
    """Each row has the right item first, then another item of the training part."""
    chance = random.Random(4)
    kept = [
        item(f"tool {n} {''.join(chance.choices(ascii_lowercase, k=9))}", server=f"s{n % 20}")
        for n in range(190)
    ]
    skill = item(
        "quote", "Writes offers for building work. Use when a quote or a bid is asked for."
    )
    aside = [item(f"aside {n}", server="t", part="test") for n in range(9)]
    items = [*kept, skill, *aside]
    queries = [Query(one.name[::-1], "k", one.id, "new") for one in kept]
    texts = by_letters([one.texts()[0] for one in items])
    same = alike(items, texts)
    found = [*rows(queries, items, texts, same, by_letters, passes=2, seed=1)]
    assert len(found) == 2 * (190 + 1 + 38)
    right = Counter(row.places[0] for row in found)
    assert all(right[n] >= 2 for n in range(191))
    assert all(items[n].part is Part.TRAIN for row in found for n in row.places)
    assert all(row.places[0] != row.places[1] for row in found)
    assert all(row.texts[1] in items[row.places[1]].texts() for row in found)
    of_skill = [row for row in found if row.places[0] == 190]
    assert any(row.texts[0] == "quote: Writes offers for building work" for row in of_skill)
    again = rows(queries, items, texts, same, by_letters, passes=2, seed=1)
    assert [*again] == found


def test_siblings_are_alike_only_if_they_are_nearly_equal() -> None:
    """Tools of one server have similar texts; similar tools of several servers may be equal."""
    texts = np.eye(4, 3, dtype=np.float32)
    texts[1] = texts[3] = (0.93, (1 - 0.93**2) ** 0.5, 0)
    items = [item("a", server="x"), item("b", server="x"), item("c", server="y"), item("d")]
    found = alike(items, texts)
    assert found.tolist() == [
        [True, False, False, True],
        [False, True, False, True],
        [False, False, True, False],
        [True, True, False, True],
    ]


def test_a_name_is_a_query_only_if_one_item_has_it() -> None:
    """If two servers have a tool of that name, it would not show which one is wanted."""
    chance = random.Random(4)
    names = [
        "search",
        "search",
        *("".join(chance.choices(ascii_lowercase, k=9)) for _ in range(98)),
    ]
    items = [item(name, server=f"s{n}") for n, name in enumerate(names)]
    queries = [Query(f"find {n}", "k", one.id, "new") for n, one in enumerate(items)]
    texts = by_letters([one.texts()[0] for one in items])
    found = [*rows(queries, items, texts, alike(items, texts), by_letters, passes=20, seed=1)]
    of_names = [row for row in found if not row.query.startswith("find")]
    assert len(of_names) == 20 * 20
    assert not {0, 1} & {row.places[0] for row in of_names}
