"""The filters of the search page: the indexed values with their numbers of items."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from repertory.search.engine import SearchEngine

FIELDS = {"kind": "Kind", "source": "Source", "server": "Server", "tag": "Tag"}
MAX_VALUES = 200  # most frequent values per field


class Choice(msgspec.Struct, frozen=True):
    """One field, and its values with their numbers of items."""

    field: str
    label: str
    values: Sequence[tuple[str, int]]

    def with_chosen(self, chosen: Sequence[str]) -> list[tuple[str, int]]:
        """The values, starting with the chosen ones, even if no item has them any more."""
        counts = dict(self.values)
        rest = [pair for pair in self.values if pair[0] not in chosen]
        return [*((value, counts.get(value, 0)) for value in dict.fromkeys(chosen)), *rest]


def choices_of(engine: SearchEngine) -> list[Choice]:
    """All fields with their values."""
    counts = engine.keywords.counts
    return [Choice(field, label, most(counts(field))) for field, label in FIELDS.items()]


def most(counts: Counter[str]) -> list[tuple[str, int]]:
    """The values with their counts, most frequent first."""
    del counts[""]  # items without a server
    return sorted(counts.most_common(MAX_VALUES), key=lambda pair: (-pair[1], pair[0]))
