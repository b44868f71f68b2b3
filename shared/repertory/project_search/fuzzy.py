"""Files with words similar to a query's, ranked by how much of the query they match."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from repertory.index.keywords.lexicon import MIN_PREFIX_LENGTH, VARIANT_FACTOR
from repertory.index.keywords.tokens import STOP_WORDS
from repertory.project_search.file import File
from repertory.project_search.query import Field
from repertory.project_search.word_index import Column, WordIndex, words_of

MAX_WORDS = 20  # per query; the longest ones are compared
MIN_MATCH_LENGTH = 2  # characters
_ROUNDING = 1e-6  # tolerance for the rounding error of similarities

Scores = NDArray[np.float32]


class FuzzyMatch(msgspec.Struct, frozen=True):
    """A file that matches a query.

    Attributes:
        field: The field that matches best.
        score: How much of the query the file matches, 0…1.
        word: The word of that field that matches most of the query; empty if the field matches
            as a whole.
    """

    file: File
    field: Field
    score: float
    word: str = ""


def fuzzy_matches(
    index: WordIndex, query: str, fields: Sequence[Field], threshold: float
) -> Iterator[FuzzyMatch]:
    """Yield the files that resemble a query, best match first.

    A query word matches a word if at most ``threshold`` of the letters differ, or if it is that
    word's prefix; it is weighted by its length. A file must match ``(1 - threshold)²`` of the
    query: all of it exactly at 0, half of it at 0.3, nothing at 1. A title that resembles the whole
    query scores its similarity. Words of one character do not count. Ties: a matching title or
    name first, then the order of the files.

    The query is folded; of the fields, the title comes first.
    """
    typed = _typed(query)
    if not typed or not index.files:
        return
    least = max(0.0, 1.0 - threshold - _ROUNDING)
    alike = _similarities(typed, index, least)
    shares = np.array([len(word) for word in typed], np.float32)
    shares /= shares.sum()

    best = [_best(alike, index.columns[field], len(index.files)) for field in fields]
    score = shares @ np.maximum.reduce(best)
    scores = np.stack([shares @ one for one in best])
    if Field.TITLE in fields:
        titles = [file.title for file in index.files]
        whole = _osa([query], titles, least)[0]
        score = np.maximum(score, whole)
        scores[0] = np.maximum(scores[0], whole)
    score = np.minimum(score, np.float32(1.0)).round(4)
    field_of = scores.argmax(axis=0)
    worth = alike * shares[:, np.newaxis]

    rows = np.flatnonzero(score >= least**2 - _ROUNDING)
    is_text = np.array([field not in (Field.TITLE, Field.NAME) for field in fields])
    for row in rows[np.lexsort((rows, is_text[field_of[rows]], -score[rows]))].tolist():
        field = fields[field_of[row]]
        word = _word(index, worth, index.columns[field].of(row))
        yield FuzzyMatch(index.files[row], field, float(score[row]), word)


def _typed(query: str) -> list[str]:
    """The query's words to compare; stop words only if it has no others."""
    found = [word for word in dict.fromkeys(words_of(query)) if len(word) >= MIN_MATCH_LENGTH]
    telling = [word for word in found if word not in STOP_WORDS] or found
    return sorted(telling, key=len, reverse=True)[:MAX_WORDS]


def _similarities(typed: Sequence[str], index: WordIndex, least: float) -> Scores:
    """The similarity of each typed word with each word of the index; 0 below ``least``."""
    alike = _osa(typed, index.vocabulary, least)
    if least <= VARIANT_FACTOR:
        for beginning, similarity in zip(typed, alike, strict=True):
            if len(beginning) >= MIN_PREFIX_LENGTH and beginning in index.text:
                begun = [
                    number
                    for number, word in enumerate(index.vocabulary)
                    if beginning in word and word.startswith(beginning)  # "in" is a quick filter
                ]
                similarity[begun] = np.maximum(similarity[begun], np.float32(VARIANT_FACTOR))
    return alike


def _osa(typed: Sequence[str], others: Sequence[str], least: float) -> Scores:
    """The normalised OSA similarity of all pairs; 0 below ``least``."""
    scores: Scores = cdist(
        typed, others, scorer=OSA.normalized_similarity, score_cutoff=least, dtype=np.float32
    )
    return scores


def _best(alike: Scores, column: Column, rows: int) -> Scores:
    """The similarity of each typed word with the most similar word of each row."""
    best = np.zeros((len(alike), rows), np.float32)
    near: NDArray[np.bool_] = np.logical_or.reduce(alike > 0)
    hits = column.places_of(near)
    words, row_of = column.numbers[hits], column.rows_of(hits)
    for found, similarity in zip(best, alike, strict=True):
        np.maximum.at(found, row_of, similarity[words])
    return best


def _word(index: WordIndex, worth: Scores, words: NDArray[np.int32]) -> str:
    """The word with the highest worth, ties by position; empty if all are 0."""
    most = worth[:, words].max(axis=0, initial=0.0)
    if not most.any():
        return ""
    word: str = index.vocabulary[words[most.argmax()]]
    return word
