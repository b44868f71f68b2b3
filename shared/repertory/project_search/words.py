"""The words of a project's files, as numbers: what a fuzzy search compares with."""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.index.keywords import tokens
from repertory.project_search.query import SearchType
from repertory.project_search.texts import File

_RUN = re.compile(r"[^\W\d_]+|\d+")
_ASCII = re.compile("[a-z]+")

Numbers = NDArray[np.int32]


class Column(msgspec.Struct, frozen=True):
    """The words of one field: those of a row are ``numbers[starts[row]:starts[row + 1]]``.

    Each is there once, in the order of the text.
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
    """The words of some files, whose rows are their places.

    Attributes:
        files: The files.
        vocabulary: The words, by number.
        columns: Which words each field has.
    """

    files: Sequence[File]
    vocabulary: Sequence[str]
    columns: Mapping[SearchType, Column]

    def may_contain(self, text: str) -> Sequence[File]:
        """The files that may contain a case-folded text, in their order; none that does is missing.

        They are those with a word in which the longest run of ASCII letters of the text occurs.
        """
        part = max(_ASCII.findall(text), key=len, default="")
        if not part:
            return self.files
        has = np.array([part in word for word in self.vocabulary], np.bool_)
        rows = np.zeros(len(self.files), np.bool_)
        for column in self.columns.values():
            rows[column.rows_of(np.flatnonzero(has[column.numbers]))] = True
        return [self.files[row] for row in np.flatnonzero(rows).tolist()]


class Words:
    """Reads the words of files. Safe to call from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}  # of the words; only grows, until most are unused
        self._index = WordIndex((), (), {})

    def of(self, files: Sequence[File]) -> WordIndex:
        """The words of files; only files that were not among the last ones are read.

        Args:
            files: The files; the same object as long as they are the same.
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
    """The words of a case-folded text in the order in which each is first met, some repeated.

    They are those of the keyword index as they are written, and the words that it leaves out.
    Every run of ASCII letters is one of them, or part of one.
    """
    for run in dict.fromkeys(_RUN.findall(text)):
        if run.isascii():
            yield run
        else:  # it may have accents, or no spaces between its words
            yield from (word for word, _ in tokens.words(run))
            yield from _ASCII.findall(run)


def _unused(index: WordIndex) -> int:
    """How many words of the vocabulary no file has any more."""
    used = np.zeros(len(index.vocabulary), np.bool_)
    for column in index.columns.values():
        used[column.numbers] = True
    return len(used) - int(used.sum())
