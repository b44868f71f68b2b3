"""Orders the candidates of each text of a query, and of all its texts together."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from msgspec.structs import replace

from repertory.catalogue.precedence import Precedence
from repertory.catalogue.safety import safety
from repertory.search.answer import shown_confidence
from repertory.search.candidates import Candidates
from repertory.search.confidence import Confidences, is_typed
from repertory.search.query import Query
from repertory.search.steps import Merged, merge


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """The ranked candidates of one text: the query, or a step of its task.

    Attributes:
        candidates: The candidates, with the cleaned query.
        confidence: The confidence of each candidate.
        notes: The effects of policies, by place.
        order: The places of the candidates, best first.
        records: Records that came with the vectors' answer, by id, as JSON.
    """

    candidates: Candidates
    confidence: Confidences
    notes: Mapping[int, Sequence[str]]
    order: Sequence[int]
    records: Mapping[str, str] = {}


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The items that were found for a query, in order.

    Attributes:
        query: The cleaned query.
        texts: The candidates of the query as a whole, then of each of its steps.
        merged: The merged order of all candidates, with confidences as shown in answers.
        problems: Why an arm is unavailable, if one is.
    """

    query: Query
    texts: Sequence[Ranked]
    merged: Merged
    problems: tuple[str, ...]

    @property
    def records(self) -> dict[str, str]:
        """Records that came with the vectors' answers, by id, as JSON."""
        return {one: record for text in self.texts for one, record in text.records.items()}

    def best_of(self, row: int) -> tuple[Ranked, int]:
        """The text for which a row has its highest confidence, and the row's place there."""
        ranked = self.texts[self.merged.text[row]]
        return ranked, ranked.candidates.place_of[row]

    def reaching(self, threshold: float) -> list[int]:
        """The rows that reach a threshold, best first; an item whose name was typed always does."""
        found = [ranked.candidates for ranked in self.texts]
        typed = {row for one in found for row in one.rows[is_typed(one)].tolist()}
        confidence = self.merged.confidence
        return [row for row in self.merged.order if confidence[row] >= threshold or row in typed]


def task_of(query: Query, texts: Sequence[Ranked], problems: Sequence[str]) -> Task:
    """Merge ranked texts into a task: the query as a whole, then each of its steps."""
    found = [
        zip(
            one.candidates.rows[one.order].tolist(),
            one.confidence[one.order].round(6).tolist(),
            strict=True,
        )
        for one in texts
    ]
    merged = merge(found)
    shown = {row: shown_confidence(one) for row, one in merged.confidence.items()}
    merged = replace(merged, confidence=shown)
    return Task(query=query, texts=texts, merged=merged, problems=tuple(problems))


def best_first(
    candidates: Candidates, confidence: Confidences, precedence: Precedence
) -> list[int]:
    """The places of the candidates, best first.

    Ties are broken by how harmless a tool is, then by the precedence of the source, then by id.
    """

    def among_equals(place: int) -> tuple[int, tuple[int, str]]:
        entry = candidates.entry(place)
        return safety(entry.tags), precedence(entry)

    rounded = confidence.round(6)
    order = np.argsort(-rounded)
    found: list[int] = order.tolist()
    # Read entries only to break ties, because reading one takes longer than this sort.
    falls = np.diff(rounded[order]) < 0
    if not falls.all():
        ends = [0, *(np.flatnonzero(falls) + 1).tolist(), len(found)]
        for start, end in pairwise(ends):
            if end - start > 1:
                found[start:end] = sorted(found[start:end], key=among_equals)
    return found
