"""Finds items that are the same thing twice, like a skill in two repositories."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from repertory.catalogue.item import Kind
from repertory.index.keywords.document import Entry
from repertory.index.keywords.tokens import terms

MAX_DUPLICATES = 20  # ids that one hit names
MAX_COMPARED = 24  # terms of descriptions that are compared; the kept 400 characters have more
# Terms below which a description is too general to compare: of tools of two servers ("Create an
# issue") and of documents ("Introduction").
MIN_TERMS = 4


def grouped(keys: Sequence[int], entry_at: Callable[[int], Entry]) -> list[list[int]]:
    """Group items that are the same thing: copies follow the first of them.

    They have one kind, one name, apart from case, separators and the server's name before it, and
    descriptions of the same words, apart from inflection and stop words. Documents have one text,
    too: many begin alike.

    Args:
        keys: The ``duplicate_key`` of each item, which digests its kind and name.
        entry_at: The entry of an item by its place; only those of equal keys are read.

    Returns:
        The places of the items of each group, in order; the groups by their first place.
    """
    named: defaultdict[int, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        named[key].append(place)
    groups: list[list[int]] = []
    for places in named.values():
        if len(places) == 1:
            groups.append(places)
            continue
        same: defaultdict[Hashable, list[int]] = defaultdict(list)
        for place in places:
            same[_description(entry_at(place))].append(place)
        groups += same.values()
    return sorted(groups)


def _description(entry: Entry) -> Hashable:
    """A value that is equal for the same description of one thing."""
    found = tuple(terms(entry.description)[:MAX_COMPARED])
    if not found or (entry.kind is Kind.DOCUMENT and len(found) < MIN_TERMS):
        return entry.id
    is_general = entry.kind is Kind.TOOL and len(found) < MIN_TERMS
    return found, entry.server if is_general else entry.body
