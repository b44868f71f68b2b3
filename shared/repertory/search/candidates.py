"""The items that either arm found for a query, with all that is known of each."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz

from repertory.catalogue.names import split_name
from repertory.embedding.models import Calibration
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex, Term
from repertory.index.vectors import Filter, Match
from repertory.search.answer import Mode, Query

POOL = 20  # candidates of each arm; 50 are no better on any labelled set
LARGEST_POOL = 100_000  # whatever the limit
NAME_WORDS = 4  # a longer query is a sentence, not a name
SHORTEST_NAME = 4  # characters of an identifier that is looked for within a sentence
SECTION = 0.95  # what a section's cosine counts of its item's own

Values = NDArray[np.float32]


def pool(query: Query) -> int:
    """How many candidates each arm gives for a query."""
    return min(max(POOL, 2 * query.limit), LARGEST_POOL)


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
        sections: The number of the section that beat the item itself, by row.
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
    sections: Mapping[int, int]

    def entry(self, place: int) -> Entry:
        """The entry at a place."""
        return self.index.entries[int(self.rows[place])]


def gather(
    query: Query,
    index: KeywordIndex,
    *,
    terms: Sequence[Term],
    found: NDArray[np.integer],
    matches: Sequence[Match],
    cosines_of: Callable[[list[str]], Mapping[str, float]],
    calibration: Calibration,
    mode: Mode,
) -> Candidates:
    """Bring together what both arms and the names found.

    Args:
        query: What is looked for.
        index: The keyword index.
        terms: The query's terms in it.
        found: The rows that the keyword arm found.
        matches: What the vectors found.
        cosines_of: The cosines of further items, by id; empty when the semantic arm is missing.
        calibration: The model's.
        mode: Which arms answered.
    """
    cosines, sections = _fold(index, matches)
    close = _close_names(query.text, index, query.where)
    rows = np.array(sorted({*found.tolist(), *cosines, *close}), np.int64)

    rest = [index.entries[row].id for row in rows if int(row) not in cosines]
    cosines |= {index.row_of[item]: value for item, value in cosines_of(rest).items()}
    cosine = np.array([cosines.get(int(row), 0.0) for row in rows], np.float32)
    return Candidates(
        query=query,
        index=index,
        terms=terms,
        mode=mode,
        rows=rows,
        cosine=cosine,
        semantic=calibration.apply(cosine),
        keyword=index.scores(terms, rows),
        similarity=_similarities(query.text, index, rows),
        close=np.array([close.get(int(row), 0.0) for row in rows], np.float32),
        sections=sections,
    )


def _fold(index: KeywordIndex, matches: Sequence[Match]) -> tuple[dict[int, float], dict[int, int]]:
    """The best cosine of each row, and the section it is of where that is not the item itself."""
    cosines: dict[int, float] = {}
    sections: dict[int, int] = {}
    for match in matches:
        row = index.row_of_key.get(match.key)
        if row is None:  # indexed since this keyword index was made
            continue
        cosine = match.score if match.section is None else SECTION * match.score
        if cosine > cosines.get(row, -1.0):
            cosines[row] = cosine
            if match.section is None:
                sections.pop(row, None)
            else:
                sections[row] = match.section
    return cosines, sections


def _close_names(text: str, index: KeywordIndex, where: Filter) -> dict[int, float]:
    """The rows whose names were typed: as the whole query, or as an identifier within it."""
    words = text.split()
    if len(words) <= NAME_WORDS:
        close = index.names.close(text)
    else:
        named = [word for word in words if _is_identifier(word)]
        close = {row: 1.0 for word in named for row in index.names.exact(word)}
    if where and close:
        rows = np.array(list(close), np.int64)
        return {int(row): close[int(row)] for row in rows[index.allowed(rows, where)]}
    return close


def _is_identifier(word: str) -> bool:
    """Whether a word looks like the name of something: ``read_file``, ``readFile``."""
    return len(word) >= SHORTEST_NAME and len(split_name(word).split()) > 1


def _similarities(text: str, index: KeywordIndex, rows: NDArray[np.int64]) -> Values:
    typed = split_name(text)
    if not 0 < len(typed.split()) <= NAME_WORDS:
        return np.zeros(len(rows), np.float32)
    names = (split_name(index.entries[row].name) for row in rows)
    return np.array([fuzz.ratio(typed, name) / 100 for name in names], np.float32)
