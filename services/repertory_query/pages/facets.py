"""The number of results that each filter value would leave."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from repertory.search.answer import Answer, Hit
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from repertory.values import MAX_LIMIT
from repertory_query.pages.choices import Choice, most_frequent


def facets(
    choices: Sequence[Choice], engine: SearchEngine, query: Query, answer: Answer
) -> list[Choice]:
    """The filters with counts over a query's results, up to ``MAX_LIMIT`` results.

    The counts of a field ignore its own filter, because its values are alternatives. Only results
    are counted, never the catalogue. If the shown page is not full, it has all results; otherwise
    this searches again.

    Args:
        choices: The filters, with the counts of the catalogue.
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
    for choice in choices:
        name = f"{choice.field}s"
        is_filtered = bool(getattr(query.where, name))
        counts = Counter(_values(results(name if is_filtered else ""), choice.field))
        counted.append(replace(choice, values=_shown(choice, counts)))
    return counted


def _values(hits: Iterable[Hit], field: str) -> Iterable[str]:
    for hit in hits:
        yield from hit.tags if field == "tag" else [str(getattr(hit, field))]


def _shown(choice: Choice, counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The values to choose from: those of the results, but always all kinds, which are few."""
    if choice.field == "kind":
        return [(value, counts.get(value, 0)) for value, _ in choice.values]
    return most_frequent(counts)
