"""How many results of a query each filter value would leave."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from repertory.search.answer import Answer, Hit
from repertory.search.engine import SearchEngine
from repertory.search.query import Query
from repertory.values import MAX_LIMIT
from repertory_query.pages.choices import Choice, most


def facets(
    choices: Sequence[Choice], engine: SearchEngine, query: Query, answer: Answer
) -> list[Choice]:
    """The filters with the counts of a query's results, ``MAX_LIMIT`` of them at most.

    The counts of a field leave its own filter out, since its values are alternatives. Only the
    results are counted, never the catalogue: a shown page that is not full has them all, and
    everything else is a further search.

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
        if field == "tag":
            yield from hit.tags
        elif value := str(getattr(hit, field)):
            yield value


def _shown(choice: Choice, counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The values to choose from: those of the results; of the few kinds always all."""
    if choice.field == "kind":
        return [(value, counts.get(value, 0)) for value, _ in choice.values]
    return most(Counter(counts))
