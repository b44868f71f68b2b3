"""Items that are hard to tell apart: copies, similar descriptions, and shadowed skills."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from repertory.catalogue.item import Kind
from repertory.catalogue.precedence import by_precedence
from repertory.index.keywords.columns import duplicate_key
from repertory.index.keywords.document import Entry
from repertory.index.keywords.tokens import terms
from repertory.search.duplicates import grouped

SIMILAR = 0.8  # the least share of common terms of similar descriptions (Jaccard)
MIN_TERMS = 5  # in a description; shorter ones are not compared
MAX_COMPARED = 50  # descriptions for each term that another one is compared with

Pair = tuple[str, str]


def copies(entries: Sequence[Entry]) -> list[list[str]]:
    """Groups of ids of duplicate items; see ``duplicates.grouped``."""
    return [[entries[place].id for place in group] for group in _grouped(entries) if len(group) > 1]


def similar(entries: Sequence[Entry]) -> list[Pair]:
    """Pairs of items of one kind with similar descriptions, without copies.

    Items with names that tell them apart are left out, such as skills for Java and for Kotlin.
    """
    groups = enumerate(_grouped(entries))
    same = {entries[place].id: number for number, group in groups for place in group}
    known = {one.id: one for one in entries}
    found = [pair for kind in Kind for pair in _similar([e for e in entries if e.kind is kind])]
    return [
        (one, other)
        for one, other in found
        if same[one] != same[other] and not _are_told_apart(known[one], known[other])
    ]


def shadowed(entries: Sequence[Entry], sources: Sequence[str]) -> list[Pair]:
    """Pairs of a skill and the skill of the same name that takes precedence over it.

    Args:
        entries: The items.
        sources: The names of the sources, in the order of their precedence.
    """
    key = by_precedence(sources)
    named: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.kind is Kind.SKILL:
            named[entry.name].append(entry)
    found = []
    for group in named.values():
        first, *others = sorted(group, key=key)
        found += [(other.id, first.id) for other in others]
    return sorted(found)


def _grouped(entries: Sequence[Entry]) -> list[list[int]]:
    return grouped([duplicate_key(entry) for entry in entries], entries.__getitem__)


def _similar(entries: Sequence[Entry]) -> Iterator[Pair]:
    """Compare descriptions that share one of their rarest terms, as all similar ones do."""
    described = [(one.id, frozenset(terms(one.description))) for one in entries]
    frequency = Counter(term for _, found in described for term in found)
    with_term: defaultdict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for item, found in described:
        size = len(found)
        if size < MIN_TERMS:
            continue
        rarest = sorted(found, key=lambda term: (frequency[term], term))
        seen: set[str] = set()
        least, most = SIMILAR * size, size / SIMILAR + 1
        for term in rarest[: size - int(SIMILAR * size) + 1]:
            for other, others in with_term[term]:
                # A quick filter: most have too few terms or too many.
                if not least <= len(others) <= most or other in seen:
                    continue
                seen.add(other)
                shared = len(found & others)
                if shared >= SIMILAR * (size + len(others) - shared):
                    yield other, item
            if len(with_term[term]) < MAX_COMPARED:
                with_term[term].append((item, found))


def _are_told_apart(one: Entry, other: Entry) -> bool:
    """Whether the texts differ, and each name has a word that the other item does not have."""
    names = {*terms(one.name)}, {*terms(other.name)}
    texts = {*terms(one.description)}, {*terms(other.description)}
    has_own = names[0] - names[1] - texts[1], names[1] - names[0] - texts[0]
    return texts[0] != texts[1] and all(has_own)
