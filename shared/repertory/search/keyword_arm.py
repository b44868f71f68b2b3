"""The keyword arm: looks up the words of a query, and the names in it."""

from collections.abc import Collection, Mapping, Sequence, Set
from itertools import islice

import msgspec
import numpy as np

from repertory.catalogue import actions
from repertory.catalogue.names import compact_name, has_separators, split_name
from repertory.catalogue.policy import MAX_PHRASE_LENGTH
from repertory.index.keywords.background import is_known
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.lexicon import QueryTerm
from repertory.index.keywords.matches import Matches
from repertory.index.keywords.names import EXACT, ONE_EDIT, OTHER_WORD
from repertory.index.keywords.query_words import bare, plain
from repertory.index.keywords.tokens import term_of
from repertory.index.vectors import Filter
from repertory.search.capabilities import jobs
from repertory.search.languages import shared_terms
from repertory.search.query import Query
from repertory.search.semantic_arm import MAX_BY_MEANING
from repertory.search.similar_names import MAX_NAME_WORDS, closest_name, is_other
from repertory.telemetry.spans import traced

# Numbers of candidates. They do not depend on the query's limit, so a larger limit only adds hits.
MAX_BY_WORDS = 20  # the best by words, if there are vectors too; see benchmarks/NOTES.md
MAX_LIKELY = 10  # the best by words; for three queries in four they include all three shown items
# Items with a typed name, with a query's only word, or with a pin for it; thousands may have it.
MAX_NAMED = 200
MIN_NAME_LENGTH = 4  # characters of an identifier within a sentence


class KeywordResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the keyword arm.

    Attributes:
        matches: The query's terms in the keyword index.
        shared: The terms that a query in another language shares with names (see ``languages``),
            or the terms of a query such as "payroll skill" without the kind. None if neither.
        close: How closely the query names an item, by row; see ``NameIndex.close``.
        found: All rows that are candidates whatever the vectors find, including rows promoted by
            policies.
        keys: The keys of the items whose cosines are needed, by row.
        likely: The rows that will probably be shown, best first.
        depth: The maximum number of rows taken by words, including copies.
    """

    matches: Matches
    shared: Matches | None
    close: Mapping[int, float]
    found: Set[int]
    keys: Mapping[int, int]
    likely: Sequence[int]
    depth: int


@traced("search keywords")
def search_keywords(
    query: Query, index: KeywordIndex, also: Collection[int] = (), *, limit: int = MAX_BY_WORDS
) -> KeywordResult:
    """Look up the words of a query, which can be done while the query is embedded.

    The rows ``also`` are candidates in any case. ``keys`` also has the successors of deprecated
    items, because the vectors may find the deprecated ones. ``limit`` is the number of candidates
    by words; it is higher without the semantic arm.
    """
    matches = index.match(query.text)
    terms = shared_terms(query.text, matches) or _without_kind(query.text, matches)
    shared = matches.only(terms) if terms else None
    # Compute cached values now that are needed after the embedding and depend on the query alone.
    _ = matches.shares, matches.whole, jobs(query.text), actions.of_request(plain(query.text))
    close = _close_names(query.text, index, query.where)
    found = {*also, *close, *matches.of_forms(MAX_BY_MEANING, query.where)}
    likely = {**close}
    # Every item that has a query's only word is a good candidate, so take more of them.
    most = MAX_NAMED if len(matches.terms) == 1 else limit
    depth = most
    for one in filter(None, (matches, shared)):
        best = one.best(most, query.where).tolist()
        depth = max(depth, len(best))
        found.update(best)
        likely |= dict.fromkeys(best[:MAX_LIKELY])
    found |= promoted(query, found, index)
    successors = {*islice(index.policies.successors.values(), MAX_NAMED)}
    expected = sorted(found | _allowed(successors, index, query.where))
    return KeywordResult(
        matches=matches,
        shared=shared,
        close=close,
        found=found,
        keys=dict(zip(expected, index.keys_of(expected), strict=True)),
        likely=[*likely][:MAX_LIKELY],
        depth=depth,
    )


def _without_kind(text: str, matches: Matches) -> list[QueryTerm]:
    """The terms of a query such as "payroll skill" without the kind; empty for other queries."""
    kind = actions.kind_of(plain(text))
    return [term for term in matches.terms if term.typed != kind] if kind else []


def _close_names(text: str, index: KeywordIndex, where: Filter) -> dict[int, float]:
    """How closely a query, or an identifier within it, names items, by row.

    A name one edit away that has a different word gets ``OTHER_WORD``.
    """
    close = _first(index.names.close(text), index, where)
    wanted = bare(text)
    is_request = wanted != text.lower() and len(wanted.split()) <= MAX_NAME_WORDS
    if is_request and EXACT not in close.values():  # "a tool for create_issue"
        close = _first(index.names.close(wanted), index, where) | close
    for row, like in close.items():
        if like == ONE_EDIT and is_other(text, closest_name(text, index.entry(row))):
            close[row] = OTHER_WORD
    words = {*text.split()}
    for word in words if len(words) > 1 else ():
        if len(word) >= MIN_NAME_LENGTH and _is_identifier(word):
            rows = _first(dict.fromkeys(index.names.exact(word), EXACT), index, where)
            close |= {row: EXACT for row in rows if _has_words(word, index.entry(row))}
    return _first(close, index, where)


def _first(close: Mapping[int, float], index: KeywordIndex, where: Filter) -> dict[int, float]:
    """The allowed rows with the closest names, up to ``MAX_NAMED``."""
    allowed = [*_allowed(close, index, where)]
    if len(allowed) > MAX_NAMED:
        rows, like = np.array(allowed), np.array([close[row] for row in allowed])
        allowed = rows[index.highest_first(rows, like)[:MAX_NAMED]].tolist()
    return {row: close[row] for row in allowed}


def _is_identifier(word: str) -> bool:
    """Whether a word looks like an identifier: ``read_file``, ``readfile``."""
    return has_separators(word) or not is_known(term_of(compact_name(word)))


def _has_words(word: str, entry: Entry) -> bool:
    """Whether a word is an item's name of several words; `e-mail` does not match `email`."""
    key = compact_name(word)
    names = (name for name in (entry.id, *entry.names) if compact_name(name) == key)
    return any(" " in split_name(name) for name in names)


def promoted(query: Query, found: Collection[int], index: KeywordIndex) -> set[int]:
    """The rows that policies add to the found ones: pinned items, and successors of all of them.

    A pattern may pin a whole catalogue, so at most ``MAX_NAMED`` pinned items are added: first
    those that the configuration pins, then those whose phrases have the most terms.
    """
    policies = index.policies
    pins = policies.pinned(query.text)
    most = {row: len(pin.terms) + MAX_PHRASE_LENGTH * pin.is_vouched for row, pin in pins.items()}
    pinned = {*_first(most, index, query.where)}
    successors = policies.successors_of(pinned.union(found))
    return pinned | _allowed(successors, index, query.where)


def _allowed(found: Collection[int], index: KeywordIndex, where: Filter) -> set[int]:
    """The rows that a filter allows."""
    if not where:
        return {*found}
    rows = np.array([*found], np.int64)
    return {*rows[index.allowed(rows, where)].tolist()}
