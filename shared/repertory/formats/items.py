"""The complete tools of some answers, which formats with schemas or parameters need."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from repertory.catalogue.item import Item, Kind
from repertory.errors import StoreError
from repertory.search.answer import Answer


def whole_tools(
    answers: Iterable[Answer], items: Callable[[Sequence[str]], Mapping[str, Item]]
) -> Mapping[str, Item]:
    """The tools among the hits, by id; none while the store is unavailable.

    ``items`` is ``Backend.items``.
    """
    hits = [hit for answer in answers for hit in answer.hits if hit.kind is Kind.TOOL]
    if hits:
        with suppress(StoreError):
            return items([*dict.fromkeys(hit.id for hit in hits)])
    return {}
