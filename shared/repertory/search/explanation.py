"""What is told of one item and a search: whether it is shown, and why."""

import msgspec

from repertory.search.answer import Hit, Mode
from repertory.search.query import Query


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """A word of the query, and what the item has of it.

    Attributes:
        typed: As the query has it.
        matched: As the item has it; empty where it does not.
        fields: Where the item has it, by their names; see ``Term``.
        near: The item's word that is most like a missing one, if any is; it did not match.
        share: How much of the query it is, 0…1: rare words are more.
    """

    typed: str
    matched: str = ""
    fields: tuple[str, ...] = ()
    near: str = ""
    share: float


class Better(msgspec.Struct, frozen=True, kw_only=True):
    """An item that stands before the one that is explained."""

    id: str
    confidence: float


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a search shows an item, or why it does not.

    Attributes:
        query: The search, with its limit, threshold, weights and filters.
        verdict: The answer in a sentence or two.
        shown: Whether the search shows it.
        rank: Its place among all that was found, whatever their confidence, from 1; None where it
            was not found, or was filtered out.
        hit: The item as the search scores it, or would if it had found it.
        words: Every word of the query that is searched for.
        better: The first of what stands before it.
        mode: Which arms answered.
        degraded: Why not both did; empty when both did.
        items: How many items the index holds.
    """

    query: Query
    verdict: str
    shown: bool
    rank: int | None
    hit: Hit
    words: tuple[Word, ...]
    better: tuple[Better, ...]
    mode: Mode
    degraded: str = ""
    items: int = 0
