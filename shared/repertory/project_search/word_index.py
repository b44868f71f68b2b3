"""The words of a project's files as numbers, for fuzzy search.

The index also limits which texts an exact match has to be looked for in. Unlike the keyword index,
it covers files outside the catalogue, stop words and the order of words, and callers may set any
threshold.
"""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.names import MARKS
from repertory.index.keywords import tokens
from repertory.project_search.file import File
from repertory.project_search.query import Field

_RUN = re.compile(rf"(?:[^\W\d_]++[{MARKS}]*+)++|\d+")
_NO_ASCII_WORD = re.compile(rf"[^\W_a-z0-9]|[{MARKS}]")  # part of one, in a folded text

FEW = 4  # words that are found faster one by one than together

Numbers = NDArray[np.int32]


class Column(msgspec.Struct, frozen=True):
    """The words of one field: those of a row are ``numbers[starts[row]:starts[row + 1]]``.

    Each word of a row occurs once, in the order of the text.
    """

    numbers: Numbers
    starts: NDArray[np.int64]

    def of(self, row: int) -> Numbers:
        """The words of a row."""
        return self.numbers[self.starts[row] : self.starts[row + 1]]

    def places_of(self, words: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The positions in ``numbers`` of some words, ascending.

        Args:
            words: Whether to find each word of the vocabulary.
        """
        wanted = np.flatnonzero(words)
        if len(wanted) > FEW:
            return np.flatnonzero(words.take(self.numbers, mode="clip"))  # faster than an index
        found = [np.flatnonzero(self.numbers == word) for word in wanted.astype(np.int32)]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *found]))

    def rows_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of positions in ``numbers``."""
        return np.searchsorted(self.starts, places, side="right") - 1


class WordIndex(msgspec.Struct, frozen=True):
    """The words of some files.

    Attributes:
        files: The files, by row.
        vocabulary: The words, by number.
        text: All words, one per line.
        columns: The words of each field.
        not_ascii: Whether a file has a word that is not ASCII, of which the vocabulary may lack
            parts.
    """

    files: Sequence[File]
    vocabulary: Sequence[str]
    text: str
    columns: Mapping[Field, Column]
    not_ascii: NDArray[np.bool_]

    def candidates(self, text: str, fields: Iterable[Field]) -> Sequence[File]:
        """The files of which a field may contain a folded text, in order.

        A word of the field must contain the text's longest word.
        """
        longest = max(_RUN.findall(text), key=len, default="")
        if not longest or not longest.isascii():
            return self.files
        holds = np.zeros(len(self.vocabulary), np.bool_)
        if longest in self.text:  # a misspelt word is not
            holds[:] = [longest in word for word in self.vocabulary]
        may_contain = self.not_ascii.copy()
        for field in fields:
            column = self.columns[field]
            may_contain[column.rows_of(column.places_of(holds))] = True
        return [self.files[row] for row in np.flatnonzero(may_contain).tolist()]


_NO_WORDS = Column(np.zeros(0, np.int32), np.zeros(1, np.int64))
_EMPTY = WordIndex((), (), "", dict.fromkeys(Field, _NO_WORDS), np.zeros(0, np.bool_))


class _Numbers(dict[str, int]):
    """Numbers words in the order of their first use."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class WordIndexer:
    """Builds the word index and updates it as files change. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = _Numbers()  # of words; rebuilt once most are unused
        self._index = _EMPTY

    def of(self, files: Sequence[File]) -> WordIndex:
        """Return the words of files; only files new since the last call are read.

        Args:
            files: The files; must be the same object until one of them changes.
        """
        with self._lock:
            if self._index.files is not files:
                self._index = self._updated(files)
            return self._index

    def _updated(self, files: Sequence[File]) -> WordIndex:
        old = self._index
        if _unused(old) > len(old.vocabulary) // 2:
            old, self._numbers = _EMPTY, _Numbers()
        rows = {file: row for row, file in enumerate(old.files)}
        columns = {}
        for field in Field:
            pieces = [
                old.columns[field].of(rows[file]) if file in rows else self._read(file, field)
                for file in files
            ]
            starts = np.zeros(len(files) + 1, np.int64)
            np.cumsum([len(piece) for piece in pieces], out=starts[1:])
            columns[field] = Column(np.concatenate([np.zeros(0, np.int32), *pieces]), starts)
        not_ascii = [
            old.not_ascii[rows[file]] if file in rows else _has_other_words(file) for file in files
        ]
        words = [*self._numbers]
        return WordIndex(files, words, "\n".join(words), columns, np.array(not_ascii, np.bool_))

    def _read(self, file: File, field: Field) -> Numbers:
        found = dict.fromkeys(words_of(getattr(file, field)))
        return np.fromiter(map(self._numbers.__getitem__, found), np.int32, len(found))


def _has_other_words(file: File) -> bool:
    """Whether a file has a word that is not ASCII."""
    texts = (getattr(file, field) for field in Field)
    return any(not text.isascii() and _NO_ASCII_WORD.search(text) is not None for text in texts)


def words_of(text: str) -> Iterable[str]:
    """Return the words of a case-folded text in the order of first occurrence, some repeatedly.

    They are the keyword index's words, unstemmed, including stop words.
    """
    runs: list[str] = _RUN.findall(text)
    return runs if text.isascii() else _words(dict.fromkeys(runs))


def _words(runs: Iterable[str]) -> Iterator[str]:
    for run in runs:
        if run.isascii():
            yield run
        else:  # with accents, or in a script without spaces
            yield from (word for word, _ in tokens.words(run))


def _unused(index: WordIndex) -> int:
    """The number of words in the vocabulary that no file contains."""
    used = np.zeros(len(index.vocabulary), np.bool_)
    for column in index.columns.values():
        used[column.numbers] = True
    return len(used) - int(used.sum())
