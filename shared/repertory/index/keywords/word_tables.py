"""The words of a segment's vocabulary as the lexicon looks them up: by typos, and by character."""

from collections import defaultdict
from functools import cached_property

from repertory.index.keywords.document import TOOL, TOOL_NAME, WRITTEN
from repertory.index.keywords.packed import Strings
from repertory.index.keywords.tokens import is_unspaced
from repertory.index.keywords.typos import OneEdit


class WordTables:
    """Looks up the words of a vocabulary."""

    def __init__(self, vocabulary: Strings) -> None:
        self._vocabulary = vocabulary

    @cached_property
    def one_edit(self) -> OneEdit:
        """The words, as written or as stems, one edit away from a given one."""
        return OneEdit(
            key.removeprefix(WRITTEN)
            for key in self._vocabulary
            if not key.startswith((TOOL, TOOL_NAME))
        )

    @cached_property
    def with_character(self) -> dict[str, list[str]]:
        """The terms of unspaced scripts that contain a character."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for term in self._vocabulary:
            if len(term) <= 2 and is_unspaced(term):
                for character in {*term}:
                    found[character].append(term)
        return dict(found)
