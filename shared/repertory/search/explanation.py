"""The explanation of one item under a search: whether it is shown, and why."""

from typing import Annotated

import msgspec
from msgspec import Meta

from repertory.search.answer import Hit, Mode
from repertory.search.links import Links
from repertory.search.query import Query


class Word(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A word of the query, and its match in the item."""

    typed: str
    matched: Annotated[str, Meta(description="The item's spelling; empty if missing.")] = ""
    fields: Annotated[tuple[str, ...], Meta(description="The fields of the item; see `Term`.")] = ()
    near: Annotated[
        str, Meta(description="The item's most similar word if this one is missing.")
    ] = ""
    share: Annotated[float, Meta(description="Its share of the query; rare words have more.")]


class Better(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An item that ranks before the explained one."""

    id: str
    confidence: float


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why a search shows an item, or why it does not."""

    query: Annotated[Query, Meta(description="The search, with its weights and filters.")]
    verdict: Annotated[str, Meta(description="The answer in a sentence or two.")]
    shown: bool
    rank: Annotated[
        int | None,
        Meta(description="Its place among all found items, from 1; null if missing or filtered."),
    ]
    hit: Annotated[Hit, Meta(description="The item with the scores that it has or would have.")]
    words: Annotated[tuple[Word, ...], Meta(description="The words that are searched for.")]
    better: Annotated[tuple[Better, ...], Meta(description="The first items before it.")]
    mode: Annotated[Mode, Meta(description="The arms that answered.")]
    degraded: Annotated[str, Meta(description="Why an arm did not answer; empty if both did.")] = ""
    items: Annotated[int, Meta(description="The number of indexed items.")] = 0
    notices: Annotated[
        tuple[str, ...],
        Meta(description="What the user should know about the answer, one sentence each."),
    ] = ()
    links: Annotated[Links, Meta(description="The tools it needs, or the skills that need it.")] = (
        Links()
    )
