"""Finds duplicate items, such as one skill in two repositories."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from repertory.catalogue.item import Kind
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.tokens import terms

MAX_DUPLICATES = 20  # ids that one hit names
# Terms of a description that are compared. The stored 400 characters have more.
MAX_COMPARED = 24
# A description with fewer terms is too general to identify a tool across servers ("Create an
# issue") or a document ("Introduction").
MIN_TERMS = 4


def first_groups(rows: Sequence[int], index: KeywordIndex, limit: int) -> list[list[int]]:
    """The first groups of rows with duplicate items; see ``grouped``."""
    keys = index.duplicate_keys(np.array(rows, np.int64)).tolist()
    found = grouped(keys, lambda place: index.entry(rows[place]))[:limit]
    return [[rows[place] for place in group] for group in found]


def grouped(keys: Sequence[int], entry_at: Callable[[int], Entry]) -> list[list[int]]:
    """Group duplicate items: each group has an item, followed by its copies.

    Copies have the same kind, and the same name except for case, separators and a server's name as
    a prefix. Their descriptions have the same words, except for inflection and stop words. Copies
    of a document also have the same body, because many documents begin alike.

    Args:
        keys: The ``duplicate_key`` of each item, a digest of its kind and name.
        entry_at: Returns the entry at a place. Called only for items that share a key.

    Returns:
        The places of each group's items, ascending. Groups are sorted by their first place.
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
    """A comparison key, equal for items of one kind and name that are duplicates."""
    found = tuple(terms(entry.description)[:MAX_COMPARED])
    if not found or (entry.kind is Kind.DOCUMENT and len(found) < MIN_TERMS):
        return entry.id
    is_general = entry.kind is Kind.TOOL and len(found) < MIN_TERMS
    return found, entry.server if is_general else entry.body
