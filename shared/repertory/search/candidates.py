"""The items that either arm found for a query, with the evidence for each."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import Kind
from repertory.catalogue.views import LEAD
from repertory.embedding.models import Calibration
from repertory.index.keywords.document import Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.matches import Matches
from repertory.index.vectors import Match
from repertory.search.answer import Mode
from repertory.search.duplicates import first_groups
from repertory.search.keyword_arm import MAX_BY_WORDS, KeywordResult, promoted
from repertory.search.query import Query
from repertory.search.semantic_arm import VectorResult
from repertory.search.similar_names import similarities

Numbers = NDArray[np.float32]


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
        close: How closely the query names the item, 0…1; see ``NameIndex.close``.
        sections: The number of the best section, by row, where a section has the best cosine.
        keyword_depth: The ``depth`` of the ``KeywordResult``.
        quoted: The rows whose items contain the query word for word, or as the title of a section;
            see ``quotations``.
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
    keyword_depth: int
    quoted: frozenset[int] = frozenset()

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

    def complete(self, *, among: NDArray[np.bool_] | bool = True) -> list[list[int]]:
        """The rows of candidates that have a body and all terms, in groups of copies.

        These are the ``MAX_BY_WORDS`` groups that match best by words, of some or all candidates.
        """
        has_all = self.matches.have_all(self.weights) & among
        places = [
            place
            for place in np.flatnonzero(has_all).tolist()
            if self.entry(place).kind is not Kind.TOOL
        ]
        if not places:  # the usual case
            return []
        rows = self.rows[places]
        best: list[int] = rows[self.index.highest_first(rows, self.keyword[places])].tolist()
        return first_groups(best, self.index, MAX_BY_WORDS)

    def entry(self, place: int) -> Entry:
        """The entry at a place."""
        return self.index.entry(int(self.rows[place]))


def all_candidates(
    query: Query, index: KeywordIndex, words: KeywordResult, nearest: VectorResult | None
) -> Candidates:
    """Combine the results of both arms; ``nearest`` is None without the semantic arm."""
    matches = nearest.matches if nearest else ()
    cosines, sections = _fold(index, matches, query.weights.section_weight)
    close = words.close
    found = words.found | cosines.keys()
    found |= promoted(query, found, index)
    rows = np.sort(np.fromiter(found, np.int64, len(found)))
    ordered: list[int] = rows.tolist()
    rest = [row for row in ordered if row not in cosines]
    more = [row for row in rest if row not in words.keys]
    keys = {**words.keys, **dict(zip(more, index.keys_of(more), strict=True))}
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
        keyword_depth=words.depth,
    )


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
