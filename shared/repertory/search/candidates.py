"""The items that either arm found for a query, with the evidence for each."""

from collections.abc import Collection, Mapping, Sequence, Set
from functools import cached_property
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue import actions
from repertory.catalogue.item import KEY_BYTES
from repertory.catalogue.names import compact_name, has_separators, split_name
from repertory.catalogue.views import LEAD
from repertory.embedding.models import Calibration
from repertory.index.keywords.background import is_known
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.lexicon import Term
from repertory.index.keywords.matches import Matches
from repertory.index.keywords.names import EXACT, ONE_EDIT
from repertory.index.keywords.query_words import bare, plain
from repertory.index.keywords.tokens import term_of
from repertory.index.vectors import Filter, Match
from repertory.search.answer import Mode
from repertory.search.capabilities import jobs
from repertory.search.languages import shared_terms
from repertory.search.nearest import VectorResult
from repertory.search.query import Query
from repertory.search.similar_names import (
    MAX_NAME_WORDS,
    OTHER,
    closest_name,
    is_other,
    similarities,
)
from repertory.telemetry.spans import traced

# Numbers of candidates. They do not depend on the query's limit, so a larger limit only adds hits.
MAX_BY_MEANING = 40  # the nearest points
MAX_BY_WORDS = 20  # the best by words, if there are vectors too; see benchmarks/NOTES.md
MAX_LIKELY = 10  # the best by words; for three queries in four they include all three shown items
MAX_NAMED = 200  # items with a typed name, or with a query's only word; thousands may have it
MIN_NAME_LENGTH = 4  # characters of an identifier within a sentence

Numbers = NDArray[np.float32]


class KeywordResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the keyword arm.

    Attributes:
        matches: The query's terms in the keyword index.
        shared: The terms that a query in another language shares with names (see ``languages``),
            or the terms of a query such as "payroll skill" without the kind. None if neither.
        close: The rows whose names were typed; see ``NameIndex.close``.
        found: All rows that are candidates whatever the vectors find, including rows promoted by
            policies.
        keys: The keys of the items whose cosines are needed, by row.
        likely: The rows that will probably be shown, best first.
        limit: The maximum number of rows taken by words, including copies.
    """

    matches: Matches
    shared: Matches | None
    close: Mapping[int, float]
    found: Set[int]
    keys: Mapping[int, int]
    likely: Sequence[int]
    limit: int


class Candidates(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The items that may answer a query, with the evidence for each.

    Attributes:
        query: The cleaned query.
        index: The keyword index that all rows belong to.
        matches: The query's terms.
        shared: As in ``KeywordResult``.
        mode: The arms that answered.
        rows: The candidates' rows, ascending. The arrays below have one value per row.
        cosine: The best cosine of an item or one of its sections; 0 without the semantic arm.
        semantic: The log odds from the cosine.
        weights: The weight of each term in each candidate: shape ``(terms, candidates)``.
        keyword: The mean of these weights, weighted by rarity, 0…1.
        similarity: How similar the query is to the name, 0…1; 0 for a long query.
        close: Whether the name was typed; see ``NameIndex.close``.
        sections: The number of the best section, by row, where a section has the best cosine.
        limit: As in ``KeywordResult``.
    """

    query: Query
    index: KeywordIndex
    matches: Matches
    shared: Matches | None
    mode: Mode
    rows: NDArray[np.int64]
    cosine: Numbers
    semantic: Numbers
    weights: Numbers
    keyword: Numbers
    similarity: Numbers
    close: Numbers
    sections: Mapping[int, int]
    limit: int

    @cached_property
    def place_of(self) -> dict[int, int]:
        """The place of each row."""
        return {row: place for place, row in enumerate(self.rows.tolist())}

    @cached_property
    def sorted_cosines(self) -> list[float]:
        """The cosines, ascending, for the ranks of hits."""
        return sorted(self.cosine.tolist())

    @cached_property
    def sorted_keyword_scores(self) -> list[float]:
        """The keyword scores, ascending."""
        return sorted(self.keyword.tolist())

    def entry(self, place: int) -> Entry:
        """The entry at a place."""
        return self.index.entry(int(self.rows[place]))


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
    taken = most
    for one in filter(None, (matches, shared)):
        best = one.best(most, query.where).tolist()
        taken = max(taken, len(best))
        found.update(best)
        likely |= dict.fromkeys(best[:MAX_LIKELY])
    found |= _promoted(query, found, index)
    successors = {*islice(index.policies.successors.values(), MAX_NAMED)}
    expected = sorted(found | _allowed(successors, index, query.where))
    return KeywordResult(
        matches=matches,
        shared=shared,
        close=close,
        found=found,
        keys=dict(zip(expected, _keys(index, expected), strict=True)),
        likely=[*likely][:MAX_LIKELY],
        limit=taken,
    )


def all_candidates(
    query: Query, index: KeywordIndex, words: KeywordResult, nearest: VectorResult | None
) -> Candidates:
    """Combine the results of both arms; ``nearest`` is None without the semantic arm."""
    matches = nearest.matches if nearest else ()
    cosines, sections = _fold(index, matches, query.weights.section_weight)
    close = words.close
    found = words.found | cosines.keys()
    found |= _promoted(query, found, index)
    rows = np.sort(np.fromiter(found, np.int64, len(found)))
    ordered: list[int] = rows.tolist()
    rest = [row for row in ordered if row not in cosines]
    more = [row for row in rest if row not in words.keys]
    keys = {**words.keys, **dict(zip(more, _keys(index, more), strict=True))}
    given = nearest.cosines([keys[row] for row in rest]) if nearest else {}
    cosines |= {row: given[keys[row]] for row in rest if keys[row] in given}
    cosine = np.array([cosines.get(row, 0.0) for row in ordered], np.float32)
    weights = words.matches.weights(rows)
    return Candidates(
        query=query,
        index=index,
        matches=words.matches,
        shared=words.shared,
        mode=Mode.HYBRID if nearest else Mode.KEYWORD,
        rows=rows,
        cosine=cosine,
        semantic=(nearest.calibration if nearest else Calibration()).apply(cosine),
        weights=weights,
        keyword=words.matches.mean(weights),
        similarity=similarities(query.text, index, ordered),
        close=np.array([close.get(row, 0.0) for row in ordered], np.float32),
        sections=sections,
        limit=words.limit,
    )


def _without_kind(text: str, matches: Matches) -> list[Term]:
    """The terms of a query such as "payroll skill" without the kind; empty for other queries."""
    kind = actions.kind_of(plain(text))
    return [term for term in matches.terms if term.typed != kind] if kind else []


def _promoted(query: Query, found: Collection[int], index: KeywordIndex) -> set[int]:
    """The rows that policies add to the found ones."""
    return _allowed(index.policies.promoted(query.text, found), index, query.where)


def _keys(index: KeywordIndex, rows: Sequence[int]) -> list[int]:
    packed = index.keys_of(rows).tobytes()
    starts = range(0, len(packed), KEY_BYTES)
    return [int.from_bytes(packed[start : start + KEY_BYTES]) for start in starts]


def _fold(
    index: KeywordIndex, nearest: Sequence[Match], section_weight: float
) -> tuple[dict[int, float], dict[int, int]]:
    """The best cosine of each row, and the number of its section unless the item itself is best."""
    cosines: dict[int, float] = {}
    sections: dict[int, int] = {}
    rows = index.rows_of([*{match.key for match in nearest}])
    for match in nearest:
        row = rows.get(match.key)
        if row is None:  # indexed after this keyword index was built
            continue
        is_section = match.section is not None and match.section != LEAD
        cosine = section_weight * match.score if is_section else match.score
        if cosine > cosines.get(row, -1.0):
            cosines[row] = cosine
            sections.pop(row, None)
            if match.section is not None and is_section:
                sections[row] = match.section
    return cosines, sections


def _close_names(text: str, index: KeywordIndex, where: Filter) -> dict[int, float]:
    """The rows whose names were typed, as the whole query or as an identifier within it.

    A name one edit away that has a different word gets ``OTHER``.
    """
    close = _first(index.names.close(text), index, where)
    wanted = bare(text)
    is_request = wanted != text.lower() and len(wanted.split()) <= MAX_NAME_WORDS
    if is_request and EXACT not in close.values():  # "a tool for create_issue"
        close = _first(index.names.close(wanted), index, where) | close
    for row, like in close.items():
        if like == ONE_EDIT and is_other(text, closest_name(text, index.entry(row))):
            close[row] = OTHER
    words = {*text.split()}
    for word in words if len(words) > 1 else ():
        if len(word) >= MIN_NAME_LENGTH and _is_identifier(word):
            rows = _first(dict.fromkeys(index.names.exact(word), EXACT), index, where)
            close |= {row: EXACT for row in rows if _has_words(word, index.entry(row))}
    return _first(close, index, where)


def _first(close: Mapping[int, float], index: KeywordIndex, where: Filter) -> dict[int, float]:
    """The allowed rows with the closest names, up to ``MAX_NAMED``. Ties are broken by key."""
    allowed = [*_allowed(close, index, where)]
    if len(allowed) > MAX_NAMED:
        rows, like = np.array(allowed), np.array([close[row] for row in allowed])
        allowed = rows[np.lexsort((index.keys_of(rows), -like))[:MAX_NAMED]].tolist()
    return {row: close[row] for row in allowed}


def _is_identifier(word: str) -> bool:
    """Whether a word looks like an identifier: ``read_file``, ``readfile``."""
    return has_separators(word) or not is_known(term_of(compact_name(word)))


def _has_words(word: str, entry: Entry) -> bool:
    """Whether a word is an item's name of several words; `e-mail` does not match `email`."""
    key = compact_name(word)
    names = (name for name in (entry.id, *entry.names) if compact_name(name) == key)
    return any(" " in split_name(name) for name in names)


def _allowed(found: Collection[int], index: KeywordIndex, where: Filter) -> set[int]:
    """The rows that a filter allows."""
    if not where:
        return {*found}
    rows = np.array([*found], np.int64)
    return {*rows[index.allowed(rows, where)].tolist()}
