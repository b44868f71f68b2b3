"""The keyword index: BM25F over the fields of items, names, policies and filters.

An index is immutable and consists of parts: segments, each with a mask of its live rows. A change
creates a new index with the same segments, where old rows are masked out, and a small segment of
the changed items. Small segments are merged from time to time. So the cost of a change depends on
its own size only.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import KEY_BYTES, Item, item_key
from repertory.index.keywords.columns import DuplicateKeys
from repertory.index.keywords.document import Entry
from repertory.index.keywords.lexicon import Lexicon
from repertory.index.keywords.matches import Matches
from repertory.index.keywords.names import NameIndex
from repertory.index.keywords.packed import Rows
from repertory.index.keywords.paging import Page, page_of
from repertory.index.keywords.parts import Part, Parts, RowPlaces, as_keys, merged
from repertory.index.keywords.policies import PolicyIndex
from repertory.index.keywords.segment import KEY, Keys, Segment
from repertory.index.vectors import Filter

# A segment is merged with the previous one unless that is at least this many times larger. So each
# item is merged only a few times, and a search reads only a few segments.
RATIO = 4
MAX_ROWS = 262_144  # of a merged segment; merging takes seconds, and loading needs twice its memory
BATCH_SIZE = 1_000  # items per new segment; larger batches fragment the heap


class KeywordIndex:
    """The items of a catalogue for keyword search; see ``document.py`` for the weights.

    An item's row is a number that is valid in one index only: the first row of its segment plus its
    offset in the segment. Rows of removed items are never returned.
    """

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = placed = Parts(parts)
        self.parts = placed.all
        self.rows = placed.rows  # above every row
        # None of these refers to the index, so it is freed as soon as another one replaces it.
        self.names = NameIndex(placed)
        self.policies = PolicyIndex(placed, self.names)
        self._lexicon = Lexicon(self.parts)

    @classmethod
    def empty(cls) -> Self:
        """An index without items."""
        return cls(())

    def updated(self, removed: Collection[str], added: Iterable[Item]) -> "KeywordIndex":
        """This index without the items of some ids, and with others added or replaced by id.

        Search results equal those of an index built at once from the same items.
        """
        parts = _without(self.parts, removed)
        left, number = iter(added), 0
        while batch := {item.id: item for item in islice(left, BATCH_SIZE)}:
            number += len(batch)
            parts = [*_without(parts, batch), Part(Segment.of(batch.values()))]
            while _is_to_merge(parts):
                parts[-2:] = [Part(merged(parts[-2:]))]
        if not number and parts == [*self.parts]:
            return self
        size = sum(part.size for part in parts)
        if len(parts) > 1 and size <= min(2 * number, MAX_ROWS):  # most of it is new
            parts = [Part(merged(parts))]
        return KeywordIndex(parts)

    def only(self, sources: Collection[str]) -> "KeywordIndex":
        """This index limited to the items of some sources; itself if it has no others."""
        wanted = list(sources)
        hidden = [
            np.flatnonzero(~part.segment.columns.fields["source"].is_any(wanted))
            for part in self.parts
        ]
        parts = [part.without(rows) for part, rows in zip(self.parts, hidden, strict=True)]
        return self if sum(part.size for part in parts) == len(self) else KeywordIndex(parts)

    def prepare(self, folder: Path | None = None) -> None:
        """Build all lookup tables now, so that no search waits: under 0.1 s for 10,000 items.

        The largest arrays move to unnamed files in the folder, if one is given.
        """
        new = [part.segment for part in self.parts if not part.segment.is_prepared]
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # sorting releases Python's lock
            list(pool.map(lambda segment: segment.prepare(folder), new))
        self.policies.prepare()

    def free_memory(self) -> None:
        """Release the memory of mapped files; the next searches read them again."""
        for part in self.parts:
            part.segment.free_memory()

    def __len__(self) -> int:
        return self._size

    @cached_property
    def _size(self) -> int:
        return sum(part.size for part in self.parts)

    def entry(self, row: int) -> Entry:
        """The entry of a row."""
        return self._parts.entry(row)

    def entries(self, rows: Iterable[int]) -> list[Entry]:
        """The entries of some rows."""
        if len(self.parts) == 1:
            return [*map(self.parts[0].segment.entry, rows)]
        return [self.entry(row) for row in rows]

    def numbers(
        self, field: str, rows: NDArray[np.integer], number_of: Callable[[str], float]
    ) -> NDArray[np.float64]:
        """A number for each row, computed from the row's value in a column."""
        found = np.empty(len(rows), np.float64)
        for part, places in self.divided(rows):
            column = part.segment.columns.fields[field]
            codes = column.codes[rows[places] - part.start].tolist()
            known = {code: number_of(column.values[code]) for code in {*codes}}
            found[places] = [known[code] for code in codes]
        return found

    def duplicate_keys(self, rows: NDArray[np.integer]) -> DuplicateKeys:
        """The ``duplicate_key`` of each of some rows; copies have equal keys."""
        found = np.empty(len(rows), np.uint64)
        for part, places in self.divided(rows):
            found[places] = part.segment.columns.duplicate_keys[rows[places] - part.start]
        return found

    def all(self) -> Iterator[Entry]:
        """All entries, in no order."""
        for part in self.parts:
            yield from map(part.segment.entry, part.live_rows().tolist())

    def all_rows(self) -> Rows:
        """All rows, ascending."""
        rows = [part.rows(part.live_rows()) for part in self.parts]
        return np.concatenate(rows) if rows else np.zeros(0, np.int32)

    def counts(self, field: str) -> Counter[str]:
        """How many items have each value of ``kind``, ``source``, ``server`` or ``tag``."""
        counts: Counter[str] = Counter()
        for part in self.parts:
            counts.update(_counts(part, field))
        return counts

    def contents(self) -> tuple[dict[str, Counter[str]], str]:
        """How many items of each kind each source has, and a digest of the skills."""
        counts: dict[str, Counter[str]] = {}
        digest = 0
        for part in self.parts:
            rows, fields = part.live_rows(), part.segment.columns.fields
            kinds, sources = fields["kind"], fields["source"]
            both = kinds.codes[rows].astype(np.int64) * len(sources.values) + sources.codes[rows]
            pairs, numbers = np.unique(both, return_counts=True)
            for pair, number in zip(pairs.tolist(), numbers.tolist(), strict=True):
                kind, source = divmod(pair, len(sources.values))
                counts.setdefault(kinds.values[kind], Counter())[sources.values[source]] += number
            skills, digests = part.segment.skill_digests
            left = digests if part.alive is None else digests[part.alive[skills]]
            digest += int(left.sum(dtype=np.uint64))
        return counts, f"{digest % 2**64:016x}"

    def page(self, where: Filter, limit: int, offset: int = 0, after: str = "") -> Page:
        """A page of the items by id; see ``paging``."""
        return page_of(self.parts, where, limit, offset, after)

    def row_of(self, item: str) -> int | None:
        """The row of an item by its id; None if it is missing."""
        key = item_key(item)
        return self.rows_of([key]).get(key)

    def rows_of(self, keys: Sequence[int]) -> dict[int, int]:
        """The rows of some items by their keys; missing ones are left out."""
        if not keys:
            return {}
        wanted = as_keys(keys)
        found: dict[int, int] = {}
        for part in self.parts:
            places, rows = part.places_of(wanted)
            held = zip(places.tolist(), rows.tolist(), strict=True)
            found |= {keys[place]: row + part.start for place, row in held}
        return found

    def keys_of(self, rows: Sequence[int]) -> list[int]:
        """The keys of the items of some rows."""
        packed = self._keys(rows).tobytes()
        starts = range(0, len(packed), KEY_BYTES)
        return [int.from_bytes(packed[start : start + KEY_BYTES]) for start in starts]

    def _keys(self, rows: Sequence[int] | NDArray[np.integer]) -> Keys:
        at = np.asarray(rows, np.int64)
        keys = np.empty(len(at), KEY)
        for part, places in self.divided(at):
            keys[places] = part.segment.keys[at[places] - part.start]
        return keys

    def highest_first(
        self, rows: Sequence[int] | NDArray[np.integer], *values: NDArray[Any]
    ) -> NDArray[np.intp]:
        """The places of some rows in the order of their values, the highest first.

        Ties are broken by the next values, then by key, because the order of rows differs between
        equal indexes.
        """
        falling = [-one for one in reversed(values)]
        return np.lexsort((self._keys(rows), *falling))

    def ids_between(self, start: int, end: int) -> list[str]:
        """The ids of the items whose keys are at least ``start`` and below ``end``."""
        first, last = as_keys([start, end - 1])
        found = []
        for part in self.parts:
            keys = part.segment.sorted_keys
            rows = part.segment.by_key[keys.searchsorted(first) : keys.searchsorted(last, "right")]
            found += [self.entry(row).id for row in part.rows(rows).tolist()]
        return found

    def corrected(self, text: str) -> str:
        """A text in which misspelt words are replaced by words of this index."""
        return self._lexicon.corrected(text)

    def match(self, query: str) -> Matches:
        """The terms of a query with their corrections and completions, and their matches."""
        return Matches(query, self._lexicon.terms(query), self)

    def mentioning(self, key: str) -> list[int]:
        """The rows of the skills that mention a tool; see ``TOOL`` and ``TOOL_NAME``."""
        return [row for rows, _ in self.of_term(key) for row in rows.tolist()]

    def of_term(self, term: str) -> list[tuple[Rows, NDArray[np.float32]]]:
        """The rows that contain a term, ascending, with its weight in each, by part."""
        return [part.of_term(term) for part in self.parts if part.has_term(term)]

    def frequency(self, term: str) -> int:
        """How many items contain a term."""
        return sum(part.frequency(term) for part in self.parts)

    def weights_in(self, term: str, rows: NDArray[np.integer]) -> NDArray[np.float32]:
        """The weight of a term in each of some rows, 0 in rows without it."""
        weights = np.zeros(len(rows), np.float32)
        for part, places in self.divided(rows):
            found = part.segment.postings.weights_in(term, rows[places] - part.start)
            if found is not None:
                weights[places] = found
        return weights

    def holds(self, term: str, row: int) -> bool:
        """Whether a row contains a term."""
        part = self._parts.of(row)
        return part.segment.postings.holds(term, row - part.start)

    def allowed(self, rows: NDArray[np.integer], where: Filter) -> NDArray[np.bool_]:
        """Which of some rows a filter allows."""
        allowed = np.ones(len(rows), np.bool_)
        for part, places in self.divided(rows):
            columns = part.segment.columns
            allowed[places] = columns.allowed(rows[places] - part.start, where)
        return allowed

    def has_any(self, where: Filter) -> bool:
        """Whether a filter allows an item."""
        return any(
            bool(part.segment.columns.allowed(part.live_rows(), where).any()) for part in self.parts
        )

    def divided(self, rows: NDArray[np.integer]) -> Sequence[tuple[Part, RowPlaces]]:
        """The parts that contain some rows, each with the positions of its rows among them."""
        return self._parts.divided(rows)


def _is_to_merge(parts: Sequence[Part]) -> bool:
    if len(parts) < 2:
        return False
    before, last = parts[-2].size, parts[-1].size
    return before < RATIO * last and before + last <= MAX_ROWS


def _without(parts: Iterable[Part], items: Iterable[str]) -> list[Part]:
    """Parts without some items; repacked if more than half of their segment is removed."""
    gone = as_keys([item_key(item) for item in items])
    left = [part.without(part.places_of(gone)[1]) for part in parts]
    return [
        Part(merged([part])) if 0 < 2 * part.size < len(part.segment) else part for part in left
    ]


def _counts(part: Part, field: str) -> dict[str, int]:
    columns = part.segment.columns
    if field == "tag":
        tags = columns.tags
        rows = ((tag, part.rows(tags.at(place))) for place, tag in enumerate(tags.keys))
        return {tag: len(left) for tag, left in rows if len(left)}
    column = columns.fields[field]
    counts = np.bincount(column.codes[part.live_rows()], minlength=len(column.values)).tolist()
    return {value: count for value, count in zip(column.values, counts, strict=True) if count}
