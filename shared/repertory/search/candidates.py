"""The items that either arm found for a query, with all that is known of each."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest

import msgspec
import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz

from repertory.catalogue.names import compact_name, split_name
from repertory.catalogue.views import LEAD, MOST_VIEWS
from repertory.embedding.models import Calibration
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex, Term
from repertory.index.keywords.names import EXACT
from repertory.index.vectors import Filter, Match
from repertory.search.answer import Mode
from repertory.search.capabilities import intents
from repertory.search.languages import shared_terms
from repertory.search.query import Query

POOL = 15  # candidates of each arm; 20 or 50 are no better on any labelled set
LARGEST_POOL = 100_000  # whatever the limit
NAME_WORDS = 4  # a longer query is a sentence, not a name
MOST_NAMED = 200  # items that only their typed name brings up; thousands may be called `README`
SHORTEST_NAME = 4  # characters of an identifier that is looked for within a sentence

# A word that looks like the name of something: ``read_file``, ``readFile``; not ``GitHub``.
_IDENTIFIER = re.compile(r"[^\W_][-_./:]+[^\W_]|^[^\w]*[a-z0-9]+[A-Z]")

Values = NDArray[np.float32]


def pool(query: Query, excluded: int = 0) -> int:
    """How many candidates each arm finds for a query, enough to leave some items out."""
    return min(max(POOL, 2 * query.limit) + MOST_VIEWS * excluded, LARGEST_POOL)


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What the words of a query alone find.

    Attributes:
        terms: The query's terms in the keyword index.
        rows: The rows that match them best, best first.
        close: The rows whose names were typed; see ``NameIndex.close``.
        is_word: Whether what was typed is one word of names or of language, or very short, and so
            perhaps no name that was misspelt or begun.
        of_names: The terms that are words of names, where the query may well consist of them.
    """

    terms: Sequence[Term]
    rows: Sequence[int]
    close: Mapping[int, float]
    is_word: bool
    of_names: Sequence[Term]


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """Candidates of one query; every array has one place for each.

    Attributes:
        query: What is looked for.
        index: The keyword index that they are in.
        terms: The query's terms in it.
        mode: Which arms answered.
        rows: Their rows in the keyword index.
        cosine: The cosine of the query with the item, or with its best section if that is more.
        semantic: The same, calibrated to 0…1; 0 throughout when the semantic arm did not answer.
        keyword: Shares of a perfect keyword match, 0…1.
        similarity: How like the query the name is, 0…1; 0 throughout for queries that are no name.
        close: Whether the name was typed; see ``NameIndex.close``.
        is_word: See ``Words``.
        shared: For one word alone, and for a query in another language: shares of a perfect match
            of its words that names have, 0…1; 0 throughout for others.
        sections: The number of the section that beat the item itself, by row.
        calibration: The model's.
        exclude: The ids of items that were left out, as if they were not indexed.
    """

    query: Query
    index: KeywordIndex
    terms: Sequence[Term]
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
    terms = index.terms(query.text)
    intents(query.text)  # remembered: reasons and inference ask for them when there is no time
    return Words(
        terms=terms,
        rows=index.candidates(terms, pool(query, excluded), query.where).tolist(),
        close=_close_names(query.text, index, query.where),
        is_word=_is_word(query.text, index, terms),
        of_names=_words_of_names(query.text, index, terms),
    )


def gather(  # noqa: PLR0913 - one for each part that is brought together
    query: Query,
    index: KeywordIndex,
    *,
    words: Words,
    also: Collection[int],
    matches: Sequence[Match],
    cosines_of: Callable[[list[str]], Mapping[str, float]],
    calibration: Calibration,
    mode: Mode,
    exclude: Sequence[str] = (),
) -> Candidates:
    """Bring together what both arms found.

    Args:
        query: What is looked for.
        index: The keyword index.
        words: What the query's words find in it.
        also: Other rows that are to be scored.
        matches: What the vectors found.
        cosines_of: The cosines of further items, by id; empty when the semantic arm is missing.
        calibration: The model's.
        mode: Which arms answered.
        exclude: The ids of items to leave out.
    """
    cosines, sections = _fold(index, matches, query.weights.section_weight)
    close = words.close
    there = {*words.rows, *also, *cosines}
    there.update(nlargest(max(MOST_NAMED, pool(query, len(exclude))), close, key=close.__getitem__))
    there |= _promoted(query, index, there)
    there -= {index.row_of[item] for item in exclude if item in index.row_of}
    ordered = sorted(there)
    rows = np.array(ordered, np.int64)

    rest = [index.entries[row].id for row in ordered if row not in cosines]
    cosines |= {index.row_of[item]: value for item, value in cosines_of(rest).items()}
    cosine = np.array([cosines.get(row, 0.0) for row in ordered], np.float32)
    return Candidates(
        query=query,
        index=index,
        terms=words.terms,
        mode=mode,
        rows=rows,
        cosine=cosine,
        semantic=calibration.apply(cosine),
        keyword=index.scores(words.terms, rows),
        similarity=_similarities(query.text, index, ordered),
        close=np.array([close.get(row, 0.0) for row in ordered], np.float32),
        is_word=words.is_word,
        shared=index.scores(words.of_names, rows),
        sections=sections,
        calibration=calibration,
    )


def _promoted(query: Query, index: KeywordIndex, found: Collection[int]) -> set[int]:
    """The rows that belong beside what was found by their policies, as the filter lets through."""
    return _let_through(index.policies.promoted(query.text, found), index, query.where)


def _fold(
    index: KeywordIndex, matches: Sequence[Match], section_weight: float
) -> tuple[dict[int, float], dict[int, int]]:
    """The best cosine of each row, and the section it is of where that is not the item itself."""
    cosines: dict[int, float] = {}
    sections: dict[int, int] = {}
    for match in matches:
        row = index.row_of_key.get(match.key)
        if row is None:  # indexed since this keyword index was made
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
        if len(word) >= SHORTEST_NAME and _IDENTIFIER.search(word):
            rows = index.names.exact(word)
            meant = (row for row in rows if _is_of_words(word, index.entries[row]))
            close |= dict.fromkeys(meant, EXACT)
    return {row: close[row] for row in _let_through(close, index, where)}


def _is_of_words(word: str, entry: Entry) -> bool:
    """Whether a word is an item's name of several words; `e-mail` is none for `email`."""
    key = compact_name(word)
    names = (name for name in (entry.id, *entry.names) if compact_name(name) == key)
    return any(" " in split_name(name) for name in names)


def _let_through(found: Collection[int], index: KeywordIndex, where: Filter) -> set[int]:
    """Those of the rows that a filter lets through."""
    if not where:
        return {*found}
    rows = np.array([*found], np.int64)
    return {*rows[index.allowed(rows, where)].tolist()}


def _is_word(text: str, index: KeywordIndex, terms: Sequence[Term]) -> bool:
    if len(compact_name(text)) < SHORTEST_NAME:  # one edit makes another word of it: `aws`, `awk`
        return True
    if len(split_name(text).split()) > 1:
        return False
    return all(index.is_in_a_name(term) for term in terms)  # a stop word has none


def _words_of_names(text: str, index: KeywordIndex, terms: Sequence[Term]) -> Sequence[Term]:
    """The words of names in a query that may well consist of them."""
    if len(terms) == 1:
        return terms if index.is_in_a_name(terms[0]) else []
    return shared_terms(text, index, terms)


def _similarities(text: str, index: KeywordIndex, rows: Sequence[int]) -> Values:
    typed = split_name(text)
    if not 0 < len(typed.split()) <= NAME_WORDS:
        return np.zeros(len(rows), np.float32)
    names = (map(split_name, index.entries[row].names) for row in rows)
    ratios = [max(fuzz.ratio(typed, name) for name in all_of_it) for all_of_it in names]
    return np.array(ratios, np.float32) / np.float32(100)
