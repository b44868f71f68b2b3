"""The words of a project's files as numbers, for fuzzy search.

It is not the keyword index: it covers files outside the catalogue, stop words and the order of
words, and a caller's threshold may be any distance.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.index.keywords import tokens
from repertory.project_search.files import File
from repertory.project_search.query import SearchType

_RUN = re.compile(r"[^\W\d_]+|\d+")
_ASCII = re.compile("[a-z]+")

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

    def rows_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of places in ``numbers``."""
        return np.searchsorted(self.starts, places, side="right") - 1


class WordIndex(msgspec.Struct, frozen=True):
    """The words of some files.

    Attributes:
        files: The files, by row.
        vocabulary: The words, by number.
        columns: The words of each field.
    """

    files: Sequence[File]
    vocabulary: Sequence[str]
    columns: Mapping[SearchType, Column]

    def may_contain(self, text: str) -> Sequence[File]:
        """Return the files that may contain a case-folded text, in order, without omissions.

        They have a word that contains the text's longest run of ASCII letters.
        """
        part = max(_ASCII.findall(text), key=len, default="")
        if not part:
            return self.files
        has = np.array([part in word for word in self.vocabulary], np.bool_)
        rows = np.zeros(len(self.files), np.bool_)
        for column in self.columns.values():
            rows[column.rows_of(np.flatnonzero(has[column.numbers]))] = True
        return [self.files[row] for row in np.flatnonzero(rows).tolist()]


class WordIndexer:
    """Builds the word index and updates it as files change. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}  # of words; rebuilt once most are unused
        self._index = WordIndex((), (), {})

    def of(self, files: Sequence[File]) -> WordIndex:
        """Return the words of files; only files new since the last call are read.

        Args:
            files: The files; the same object as long as none of them changes.
        """
        with self._lock:
            if self._index.files is not files:
                self._index = self._updated(files)
            return self._index

    def _updated(self, files: Sequence[File]) -> WordIndex:
        old = self._index
        if _unused(old) > len(old.vocabulary) // 2:
            old, self._numbers = WordIndex((), (), {}), {}
        rows = {file: row for row, file in enumerate(old.files)}
        columns = {}
        for field in SearchType.ALL.fields:
            pieces = [
                old.columns[field].of(rows[file]) if file in rows else self._read(file, field)
                for file in files
            ]
            starts = np.zeros(len(files) + 1, np.int64)
            np.cumsum([len(piece) for piece in pieces], out=starts[1:])
            columns[field] = Column(np.concatenate([np.zeros(0, np.int32), *pieces]), starts)
        return WordIndex(files, list(self._numbers), columns)

    def _read(self, file: File, field: SearchType) -> Numbers:
        numbers = self._numbers
        found = dict.fromkeys(words_of(getattr(file, field)))
        return np.array([numbers.setdefault(word, len(numbers)) for word in found], np.int32)


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a case-folded text in the order of first occurrence, some repeatedly.

    They are the keyword index's words, unstemmed, including stop words. Every run of ASCII letters
    is a word or part of one.
    """
    for run in dict.fromkeys(_RUN.findall(text)):
        if run.isascii():
            yield run
        else:  # with accents, or in a script without spaces
            yield from (word for word, _ in tokens.words(run))
            yield from _ASCII.findall(run)


def _unused(index: WordIndex) -> int:
    """The number of words in the vocabulary that no file contains."""
    used = np.zeros(len(index.vocabulary), np.bool_)
    for column in index.columns.values():
        used[column.numbers] = True
    return len(used) - int(used.sum())
