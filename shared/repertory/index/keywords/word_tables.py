"""Tables of a segment's vocabulary for the lexicon: words by typo, and terms by character."""

from collections import defaultdict
from functools import cached_property

import numpy as np

from repertory.index.keywords.document import TOOL, TOOL_NAME, WRITTEN
from repertory.index.keywords.packed import Slices, Strings
from repertory.index.keywords.tokens import is_unspaced
from repertory.index.keywords.typos import OneEdit


class WordTables:
    """Looks up the words of a vocabulary."""

    def __init__(self, vocabulary: Strings) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def one_edit(self) -> OneEdit:
        """The words, as written or as stems, one edit away from a given one."""
        vocabulary = self._vocabulary
        text, starts, ends = vocabulary.slices
        starts = starts.copy()
        starts[_slice(vocabulary.beginning_with(WRITTEN))] += len(WRITTEN)
        is_word = np.ones(len(vocabulary), np.bool_)
        for key in (TOOL, TOOL_NAME):
            is_word[_slice(vocabulary.beginning_with(key))] = False
        return OneEdit([Slices(text, starts[is_word], ends[is_word])])

    @cached_property
    def with_character(self) -> dict[str, list[str]]:
        """The terms of unspaced scripts that contain a character."""
        vocabulary = self._vocabulary
        text, starts, ends = vocabulary.slices
        # Terms of two characters have at most eight bytes, and these scripts are not ASCII.
        widths = ends - starts
        short = np.flatnonzero((widths > 0) & (widths <= 8))
        possible = short[text[starts[short]] >= 0x80]
        found: defaultdict[str, list[str]] = defaultdict(list)
        for term in map(vocabulary.__getitem__, possible.tolist()):
            if len(term) <= 2 and is_unspaced(term):
                for character in {*term}:
                    found[character].append(term)
        return dict(found)


def _slice(places: range) -> slice:
    return slice(places.start, places.stop)
