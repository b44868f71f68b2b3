"""The filters of the search page: the values with their numbers of items or results."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from repertory.search.answer import Answer, Hit
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from repertory.values import MAX_LIMIT

FIELDS = {"kind": "Kind", "source": "Source", "server": "Server", "tag": "Tag"}
MAX_VALUES = 200  # most frequent values per field


class Facet(msgspec.Struct, frozen=True):
    """One field, and its values with their numbers of items."""

    field: str
    label: str
    values: Sequence[tuple[str, int]]

    def with_chosen(self, chosen: Sequence[str]) -> list[tuple[str, int]]:
        """The values, starting with the chosen ones, even if no item has them any more."""
        counts = dict(self.values)
        rest = [pair for pair in self.values if pair[0] not in chosen]
        return [*((value, counts.get(value, 0)) for value in dict.fromkeys(chosen)), *rest]


def catalogue_facets(engine: SearchEngine) -> list[Facet]:
    """The facets with their counts over the catalogue."""
    counts = engine.keywords.counts
    return [Facet(field, label, _most_frequent(counts(field))) for field, label in FIELDS.items()]


def result_facets(
    facets: Sequence[Facet], engine: SearchEngine, query: Query, answer: Answer
) -> list[Facet]:
    """The facets with their counts over a query's results, up to ``MAX_LIMIT`` results.

    The counts of a field ignore its own filter, because its values are alternatives. Only results
    are counted, never the catalogue. If the shown page is not full, it has all results; otherwise
    this searches again.

    Args:
        facets: The facets with their counts over the catalogue.
        engine: The search as the caller sees it.
        query: The query with its filters.
        answer: Its answer.
    """
    found: dict[str, Sequence[Hit]] = {}

    def results(without: str) -> Sequence[Hit]:
        """All results without one filter."""
        if without not in found:
            where = replace(query.where, **{without: ()}) if without else query.where
            found[without] = engine.search(replace(query, where=where, limit=MAX_LIMIT)).hits
        return found[without]

    if len(answer.hits) < query.limit:
        found[""] = answer.hits
    counted = []
    for facet in facets:
        name = f"{facet.field}s"
        is_filtered = bool(getattr(query.where, name))
        counts = Counter(_values(results(name if is_filtered else ""), facet.field))
        counted.append(replace(facet, values=_shown(facet, counts)))
    return counted


def _values(hits: Iterable[Hit], field: str) -> Iterable[str]:
    for hit in hits:
        yield from hit.tags if field == "tag" else [str(getattr(hit, field))]


def _shown(facet: Facet, counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The values to choose from: those of the results, but always all kinds, which are few."""
    if facet.field == "kind":
        return [(value, counts.get(value, 0)) for value, _ in facet.values]
    return _most_frequent(counts)


def _most_frequent(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The most frequent values with their counts, except the empty value of items without one."""
    found = [pair for pair in counts.items() if pair[0]]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:MAX_VALUES]
