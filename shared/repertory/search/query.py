"""One search: its text, its limits, its weights and its filters."""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from repertory.catalogue.item import Kind
from repertory.errors import UsageError
from repertory.index.vectors import NO_FILTER, Filter
from repertory.text import cut
from repertory.values import SETTINGS, Limit, Threshold, Values, Weights

MAX_QUERY_LENGTH = 32_000  # characters
TYPING_S = 5.0  # within this time, a longer or shorter beginning continues the same search

_DEFAULTS = Values()


class Query(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One search.

    Attributes:
        text: The words, the task, or the name to search for.
        limit: The maximum number of hits.
        threshold: The minimum confidence of a hit, 0…1. A hit whose name was typed is never hidden.
        weights: How much each kind of evidence counts.
        where: Which items may be returned.
    """

    text: str
    limit: Limit = _DEFAULTS.limit
    threshold: Threshold = _DEFAULTS.threshold
    weights: Weights = Weights()
    where: Filter = NO_FILTER


def query_of(
    values: Values,
    text: str,
    *,
    limit: int | None = None,
    threshold: float | None = None,
    kinds: Iterable[str] = (),
    sources: Iterable[str] = (),
    servers: Iterable[str] = (),
    tags: Iterable[str] = (),
    **weights: float | None,
) -> Query:
    """A query, with missing values from the settings. ``weights`` are the fields of ``Weights``.

    Raises:
        UsageError: The text is empty or too long, a number is out of range, or a filter is invalid.
    """
    chosen = {name: getattr(values, name) for name in Weights.__struct_fields__}
    chosen |= {name: weight for name, weight in weights.items() if weight is not None}
    query = Query(
        text=text,
        limit=values.limit if limit is None else limit,
        threshold=values.threshold if threshold is None else threshold,
        weights=Weights(**chosen),
        where=filter_of(kinds=kinds, sources=sources, servers=servers, tags=tags),
    )
    check(query)
    return query


def filter_of(**given: Iterable[str]) -> Filter:
    """The filter for ``kinds``, ``sources``, ``servers`` and ``tags``.

    Raises:
        UsageError: One of them is a string instead of a list, or a kind is unknown.
    """
    where = Filter(**{name: tuple(texts_of(name, values)) for name, values in given.items()})
    if unknown := [kind for kind in where.kinds if kind not in list(Kind)]:
        raise UsageError(f"There is no kind {unknown[0]!r}; there are {', '.join(Kind)}.")
    return where


def texts_of(name: str, values: Iterable[str]) -> list[str]:
    """The strings of an argument that takes a list.

    Raises:
        UsageError: It is a single string, or not a list of strings.
    """
    if isinstance(values, str):
        raise UsageError(f"{name} is a string; give a list, such as {name}=[{values[:100]!r}].")
    if isinstance(values, Iterable):
        texts = list(values)
        if all(isinstance(text, str) for text in texts):
            return texts
    raise UsageError(f"{name} is {cut(repr(values), 100)}; it must be a list of strings.")


def check(query: Query) -> None:
    """Check the text and the numbers of a query.

    Raises:
        UsageError: The text is empty or too long, or a number is out of range.
    """
    check_text(query.text)
    numbers = query.limit, query.threshold, *msgspec.structs.astuple(query.weights)
    try:
        _check_numbers(*numbers)
    except TypeError:  # an unhashable value, such as a list
        _check_numbers.__wrapped__(*numbers)


@lru_cache(typed=True)  # nearly all searches have the same numbers; True must not pass as 1
def _check_numbers(limit: int, threshold: float, *weights: float) -> None:
    names = "limit", "threshold", *Weights.__struct_fields__
    for name, value in zip(names, (limit, threshold, *weights), strict=True):
        try:
            SETTINGS[name].read(value)
        except ValueError:
            wanted = SETTINGS[name].expected
            raise UsageError(f"{name} is {_shown(value)}; it must be {wanted}.") from None


def _shown(value: object) -> str:
    try:
        return cut(repr(value), 100)
    except ValueError:  # a number of more than 4,300 digits
        return "too large"


def check_text(text: str) -> None:
    """Check that a query's text is neither empty nor too long; UsageError otherwise."""
    if not text.strip():
        raise UsageError("The query is empty; say what you are looking for.")
    if len(text) > MAX_QUERY_LENGTH:
        raise UsageError(
            f"The query has {len(text):,} characters; {MAX_QUERY_LENGTH:,} is the limit. Send the "
            "task without long quotations."
        )


def continues(new: str, at: float, last: str, last_at: float) -> bool:
    """Whether a query is the last one with letters typed or deleted.

    A page searches at each letter. The times are in seconds.
    """
    return abs(at - last_at) < TYPING_S and (new.startswith(last) or last.startswith(new))
