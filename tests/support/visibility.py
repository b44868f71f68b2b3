"""Search engines limited to visible items, and catalogues with many hidden items."""

from collections.abc import Collection, Iterable

import msgspec
from hypothesis import strategies as st

from repertory.catalogue.item import Item
from repertory.catalogue.policy import Policy
from repertory.live_search.known_sources import KnownSources
from repertory.live_search.visible_subsets import subset_of
from repertory.search.engine import SearchEngine
from repertory.watch_status import SourceState, WatchStatus
from tests.support.search_laws import THINGS, VERBS, items, words

SECRET = "secret-"  # prefix of the names of hidden sources


def is_hidden(item: Item) -> bool:
    """Whether an item belongs to a hidden source."""
    return item.source.startswith(SECRET)


def state(name: str, *visible_to: str, **fields: object) -> SourceState:
    """The state of a source that only some groups can see."""
    given = {"items": 1, "stale": 0, "error": "", "seen": 1.0, "type": "skills", **fields}
    return msgspec.convert(
        {"name": name, "location": f"/srv/{name}", "visibleTo": visible_to, **given}, SourceState
    )


def known(*states: SourceState, **fields: object) -> KnownSources:
    """The known sources after a report with some source states."""
    watch = msgspec.structs.replace(WatchStatus(sources=list(states), at=1.0), **fields)
    return KnownSources().after(watch, watch.configuration)


def sources_of(catalogue: Iterable[Item]) -> KnownSources:
    """The sources of some items; hidden sources are visible only to a group."""
    names = dict.fromkeys(item.source for item in catalogue)
    return known(*(state(name, *(["a"] if name.startswith(SECRET) else [])) for name in names))


def seen(engine: SearchEngine, catalogue: Collection[Item]) -> SearchEngine:
    """The part of a search engine that a caller without groups may see."""
    sources = sources_of(catalogue)
    return subset_of(engine, sources, sources.visible(frozenset()))


def hidden(item: Item, number: int = 0) -> Item:
    """A copy of an item in a hidden source, with another id."""
    source = f"{SECRET}{item.source}"
    server = f"{SECRET}{item.server}" if item.server else ""
    return msgspec.structs.replace(
        item, id=f"{source}/{number}/{item.id}", source=source, server=server
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy | None:
    """A policy that can refer to other items' names, or None."""
    if draw(st.booleans()):
        return None
    name = f"{draw(st.sampled_from(VERBS))}_{draw(st.sampled_from(THINGS))}"
    return Policy(
        pin=tuple(draw(st.lists(words, max_size=1))),
        aliases=tuple(draw(st.lists(words, max_size=1))),
        boost=draw(st.sampled_from([0.0, 0.5, -0.5])),
        deprecated_by=draw(st.sampled_from(["", name])),
        is_vouched=draw(st.booleans()),
    )


@st.composite
def governed(draw: st.DrawFn) -> Item:
    """An item with a policy."""
    return msgspec.structs.replace(draw(items()), policy=draw(policies()))


@st.composite
def crowded(draw: st.DrawFn) -> list[Item]:
    """Some items, with up to 70 hidden variants each, often more than any arm retrieves."""
    some = draw(st.lists(governed(), min_size=1, max_size=8, unique_by=lambda item: item.id))
    others = draw(st.lists(governed(), min_size=1, max_size=3))
    crowd = [
        hidden(item, number)
        for item in (*others, *some[:2])
        for number in range(draw(st.sampled_from([1, 3, 70])))
    ]
    return [*some, *{item.id: item for item in crowd}.values()]
