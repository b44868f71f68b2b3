"""The rows for training the encoder: a query, its item, and a hard negative.

Each pass contains all queries, all triggers, and a sample of unique item names with the errors that
people make. In each pass, the negative of a row, the texts of its items, and the form of its
trigger are chosen again at random.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from repertory.catalogue.names import compact_name
from repertory.catalogue.views import views
from repertory.index.keywords.query_words import plain
from training.dataset import Item, Part, Query
from training.mine import Pairs, Vectors, mine
from training.misspelt import misspelt
from training.triggers import Trigger, trigger

NAMES = 0.2  # number of rows with names, as a share of the number of queries
LEAD_SHARE = 0.25  # share of rows in which an item is represented by its first sentence
ELEMENT_SHARE = 0.5  # share of triggers whose query is a single element of their list

Embed = Callable[[Sequence[str]], Vectors]


class Row(msgspec.Struct, frozen=True):
    """A query, and the texts and indices of two items: the right one, then a wrong one."""

    query: str
    texts: tuple[str, str]
    places: tuple[int, int]


class Asked(msgspec.Struct, frozen=True):
    """A query in all its forms, with its right item and its negatives.

    Attributes:
        forms: The query; for a trigger, also the elements of its list.
        right: The index of the right item.
        text: A replacement for the right item's text; empty to use the item's own text.
        negatives: The indices of items of other servers, and of siblings.
    """

    forms: list[str]
    right: int
    text: str
    negatives: tuple[list[int], list[int]]


def rows(
    queries: Sequence[Query],
    items: Sequence[Item],
    texts: Vectors,
    same: Pairs,
    embed: Embed,
    *,
    passes: int,
    seed: int,
) -> Iterator[Row]:
    """Generate all training rows.

    Args:
        queries: The training queries.
        items: All items.
        texts: The vectors of the items from the current encoder.
        same: Whether two items may answer the same query.
        embed: The current encoder.
        passes: The number of passes over the queries.
        seed: The seed of all random choices.
    """
    # Seeded so that every run has the same rows; not used for cryptography.
    chance = random.Random(seed)  # noqa: S311
    place = {item.id: number for number, item in enumerate(items)}
    trained = [number for number, item in enumerate(items) if item.part is Part.TRAIN]
    triggers = [(n, found) for n in trained if (found := trigger(items[n]))]
    spelt = [compact_name(item.name) for item in items]
    times = Counter(spelt)
    alone = [n for n in trained if times[spelt[n]] == 1]
    named = mine(embed([items[n].name for n in alone]), alone, items, texts, same)
    names = dict(zip(alone, named, strict=True))
    asked = [plain(query.text) for query in queries]
    right = [place[query.item] for query in queries]
    mined = mine(embed(asked), right, items, texts, same)
    whole = [
        Asked([text], own, "", negatives)
        for text, own, negatives in zip(asked, right, mined, strict=True)
    ]
    clauses = embed([plain(found.clause) for _, found in triggers])
    mined = mine(clauses, [n for n, _ in triggers], items, texts, same)
    whole += [
        _of_trigger(items[n], n, found, negatives)
        for (n, found), negatives in zip(triggers, mined, strict=True)
    ]
    for _ in range(passes):
        for one in whole:
            yield _row(chance, one, items)
        for n in chance.choices(alone, k=int(len(queries) * NAMES)):
            yield _row(chance, Asked([misspelt(items[n].name, chance)], n, "", names[n]), items)


def _of_trigger(
    item: Item, place: int, found: Trigger, negatives: tuple[list[int], list[int]]
) -> Asked:
    rest = views(item.name, item.server, found.rest, "")[0].text
    forms = [plain(text) for text in (found.clause, *found.elements)]
    return Asked(forms, place, rest, negatives)


def _row(chance: random.Random, asked: Asked, items: Sequence[Item]) -> Row:
    first, *elements = asked.forms
    query = chance.choice(elements) if elements and chance.random() < ELEMENT_SHARE else first
    wrong = chance.choice(chance.choice(asked.negatives))
    right = asked.text or _text(chance, items[asked.right])
    return Row(query, (right, _text(chance, items[wrong])), (asked.right, wrong))


def _text(chance: random.Random, item: Item) -> str:
    own, *leads = item.texts()
    return leads[0] if leads and chance.random() < LEAD_SHARE else own
