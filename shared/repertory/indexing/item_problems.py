"""Finds problems between items, such as similar names or missing successors."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from repertory.catalogue.item import Item
from repertory.catalogue.likeness import likenesses
from repertory.catalogue.names import compact_name
from repertory.catalogue.precedence import by_precedence
from repertory.index.keywords.document import Entry
from repertory.sources.source import Problem, warning
from repertory.text import counted

Compared = Item | Entry


def problems_between(
    items: Collection[Compared], precedence: Sequence[str], *, are_all: bool
) -> list[Problem]:
    """The problems between some items of a catalogue.

    Args:
        items: The items.
        precedence: The names of the sources, highest precedence first.
        are_all: Whether these are all items, so that a missing item does not exist.
    """
    ordered = sorted(items, key=by_precedence(precedence))
    paths = {one.id: one.path for one in ordered}
    alike, others = likenesses(ordered)
    found = [warning(paths[one], text, item=one) for one, text in alike.items()]
    if others:
        more = counted(others, "more tool has", "more tools have")
        found.append(warning("", f"{more} the name of another server's tool, or a similar one."))
    return [*found, *(_without_successor(ordered) if are_all else ())]


def _without_successor(items: Sequence[Compared]) -> Iterator[Problem]:
    """A problem for each deprecated item whose successor does not exist."""
    deprecated = [item for item in items if item.policy and item.policy.deprecated_by]
    named: defaultdict[str, set[str]] = defaultdict(set)
    for item in items if deprecated else ():
        for name in (item.id, item.name):
            named[compact_name(name)].add(item.id)
    for item in deprecated:
        successor = item.policy.deprecated_by if item.policy else ""
        if not named[compact_name(successor)] - {item.id}:
            text = f"{item.id} is deprecated in favour of {successor!r}, and no other item has that"
            yield warning(item.path, f"{text} id or name.", item=item.id)
