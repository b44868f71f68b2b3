"""The items that either arm found for a query, with the signals of each."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest

import msgspec
import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz

from repertory.catalogue.names import compact_name, split_name
from repertory.catalogue.views import LEAD, MAX_VIEWS
from repertory.embedding.models import Calibration
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.matches import Matches
from repertory.index.keywords.names import EXACT
from repertory.index.vectors import Filter, Match
from repertory.search.answer import Mode
from repertory.search.capabilities import intents
from repertory.search.languages import shared_terms
from repertory.search.query import Query

POOL = 15  # candidates of each arm; 20 or 50 are no better on any labelled set
MAX_POOL = 100_000  # at any limit
MAX_NAME_WORDS = 4  # a longer query is a sentence, not a name
MAX_NAMED = 200  # items added for their typed name alone; thousands may be called `README`
MIN_NAME_LENGTH = 4  # characters of an identifier within a sentence

# A word that looks like the name of something: ``read_file``, ``readFile``; not ``GitHub``.
_IDENTIFIER = re.compile(r"[^\W_][-_./:]+[^\W_]|^[^\w]*[a-z0-9]+[A-Z]")

Values = NDArray[np.float32]


def pool(query: Query, excluded: int = 0) -> int:
    """The number of candidates that each arm returns, some of which may be excluded."""
    return min(max(POOL, 2 * query.limit) + MAX_VIEWS * excluded, MAX_POOL)


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the keyword arm.

    Attributes:
        matches: The query's terms in the keyword index.
        rows: The rows that match them best, best first.
        close: The rows whose names were typed; see ``NameIndex.close``.
        is_word: Whether the query is one word of names or of language, or very short, and so
            perhaps not a misspelt or unfinished name.
        of_names: The terms that are words of names, if the query may consist of such words.
    """

    matches: Matches
    rows: Sequence[int]
    close: Mapping[int, float]
    is_word: bool
    of_names: Matches


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """Candidates of one query; every array has one place for each.

    Attributes:
        query: The query.
        index: The keyword index that they are in.
        matches: The query's terms in it.
        mode: Which arms answered.
        rows: Their rows in the keyword index.
        cosine: The cosine of the query with the item, or with its best section if that is higher.
        semantic: The same, calibrated to 0…1; all 0 if the semantic arm did not answer.
        keyword: Shares of a perfect keyword match, 0…1.
        similarity: The similarity of query and name, 0…1; all 0 if the query is too long for a
            name.
        close: Whether the name was typed; see ``NameIndex.close``.
        is_word: See ``Words``.
        shared: For a single word, and for a query in another language: the share, 0…1, of a perfect
            match of those words that occur in names; all 0 for other queries.
        sections: The number of the section that beat the item itself, by row.
        calibration: The model's.
        exclude: The ids of items that were left out, as if they were not indexed.
    """

    query: Query
    index: KeywordIndex
    matches: Matches
    mode: Mode
    rows: NDArray[np.int64]
    cosine: Values
    semantic: Values
    keyword: Values
    similarity: Values
    close: Values
    is_word: bool
    shared: Values
    sections: Mapping[int, int]
    calibration: Calibration
    exclude: Sequence[str] = ()

    def entry(self, place: int) -> Entry:
        """The entry at a place."""
        return self.index.entries[int(self.rows[place])]


def read(query: Query, index: KeywordIndex, excluded: int = 0) -> Words:
    """Look up the words of a query, which can be done while it is embedded."""
    matches = index.match(query.text)
    intents(query.text)  # fills its cache: reasons and inference use it after the embedding
    return Words(
        matches=matches,
        rows=matches.best(pool(query, excluded), query.where).tolist(),
        close=_close_names(query.text, index, query.where),
        is_word=_is_word(query.text, matches),
        of_names=_words_of_names(query.text, matches),
    )


def gather(  # noqa: PLR0913 - one for each part that is brought together
    query: Query,
    index: KeywordIndex,
    *,
    words: Words,
    also: Collection[int],
    nearest: Sequence[Match],
    cosines_of: Callable[[list[str]], Mapping[str, float]],
    calibration: Calibration,
    mode: Mode,
    exclude: Sequence[str] = (),
) -> Candidates:
    """Combine the results of both arms, ``words`` and ``nearest``; see ``Candidates``.

    The rows ``also`` are scored too. ``cosines_of`` returns the cosines of other items by id; it is
    empty without the semantic arm.
    """
    cosines, sections = _fold(index, nearest, query.weights.section_weight)
    close = words.close
    found = {*words.rows, *also, *cosines}
    found.update(nlargest(max(MAX_NAMED, pool(query, len(exclude))), close, key=close.__getitem__))
    found |= _allowed(index.policies.promoted(query.text, found), index, query.where)
    found -= {index.row_of[item] for item in exclude if item in index.row_of}
    ordered = sorted(found)
    rows = np.array(ordered, np.int64)

    rest = [index.entries[row].id for row in ordered if row not in cosines]
    cosines |= {index.row_of[item]: value for item, value in cosines_of(rest).items()}
    cosine = np.array([cosines.get(row, 0.0) for row in ordered], np.float32)
    return Candidates(
        query=query,
        index=index,
        matches=words.matches,
        mode=mode,
        rows=rows,
        cosine=cosine,
        semantic=calibration.apply(cosine),
        keyword=words.matches.scores(rows),
        similarity=_similarities(query.text, index, ordered),
        close=np.array([close.get(row, 0.0) for row in ordered], np.float32),
        is_word=words.is_word,
        shared=words.of_names.scores(rows),
        sections=sections,
        calibration=calibration,
        exclude=exclude,
    )


def _fold(
    index: KeywordIndex, nearest: Sequence[Match], section_weight: float
) -> tuple[dict[int, float], dict[int, int]]:
    """The best cosine of each row, and its section unless it is the item's own."""
    cosines: dict[int, float] = {}
    sections: dict[int, int] = {}
    for match in nearest:
        row = index.row_of_key.get(match.key)
        if row is None:  # indexed after this keyword index was made
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
    """The rows whose names were typed: as the whole query, or as an identifier within it."""
    close = index.names.close(text)
    words = text.split()
    for word in words if len(words) > 1 else ():
        if len(word) >= MIN_NAME_LENGTH and _IDENTIFIER.search(word):
            rows = index.names.exact(word)
            named = (row for row in rows if _has_words(word, index.entries[row]))
            close |= dict.fromkeys(named, EXACT)
    return {row: close[row] for row in _allowed(close, index, where)}


def _has_words(word: str, entry: Entry) -> bool:
    """Whether a word is an item's name and that has several words; `e-mail` is not `email`."""
    key = compact_name(word)
    names = (name for name in (entry.id, *entry.names) if compact_name(name) == key)
    return any(" " in split_name(name) for name in names)


def _allowed(found: Collection[int], index: KeywordIndex, where: Filter) -> set[int]:
    """The rows that a filter allows."""
    if not where:
        return {*found}
    rows = np.array([*found], np.int64)
    return {*rows[index.allowed(rows, where)].tolist()}


def _is_word(text: str, matches: Matches) -> bool:
    if len(compact_name(text)) < MIN_NAME_LENGTH:  # one edit makes it another word: `aws`, `awk`
        return True
    if len(split_name(text).split()) > 1:
        return False
    return all(map(matches.is_in_a_name, matches.terms))  # a stop word has no terms


def _words_of_names(text: str, matches: Matches) -> Matches:
    """The terms that are words of names, if the query may consist of such words."""
    if len(matches.terms) == 1:
        return matches.only([*filter(matches.is_in_a_name, matches.terms)])
    return matches.only(shared_terms(text, matches))


def _similarities(text: str, index: KeywordIndex, rows: Sequence[int]) -> Values:
    typed = split_name(text)
    if not 0 < len(typed.split()) <= MAX_NAME_WORDS:
        return np.zeros(len(rows), np.float32)
    names = (map(split_name, index.entries[row].names) for row in rows)
    ratios = [max(fuzz.ratio(typed, name) for name in all_of_it) for all_of_it in names]
    return np.array(ratios, np.float32) / np.float32(100)
