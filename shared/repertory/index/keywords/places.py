"""Where the terms of one item occur, and how the item spells them.

The index keeps only a term's total weight in an item. These details are read from the item itself,
for the few items that are shown.
"""

from itertools import chain
from threading import Lock

from cachetools import LRUCache, cached

from repertory.catalogue.item import Item, Kind
from repertory.index.keywords.document import (
    BODY,
    SHOWN_DESCRIPTION,
    WRITTEN,
    Entry,
    fields,
    spoken_tags,
)
from repertory.index.keywords.tokens import Pair, runs, spellings

KEPT = 300  # items whose words are kept: what is shown once is shown again


class Places:
    """The fields and spellings of an item's terms.

    Args:
        entry: The item's entry in the keyword index.
        item: The whole item, which has more fields; None if it is unavailable.
        with_body: Whether to read the body too; otherwise a term that occurs only there counts as
            unread.
    """

    def __init__(self, entry: Entry, item: Item | None, *, with_body: bool = False) -> None:
        self._texts = [
            (field, Text(text))
            for field, text in _texts(entry, item)
            if with_body or field != BODY.name
        ]
        self._unread = _unread_field(entry, item)

    def of(self, key: str, unread: str) -> dict[str, str]:
        """An indexed term's spelling by field, in the order name, description, server, ….

        A term that was not read has the spelling ``unread`` and is in the one unread field; the
        field is empty if several are unread.
        """
        spelling: dict[str, str] = {}
        is_written, key = key.startswith(WRITTEN), key.removeprefix(WRITTEN)
        for field, text in self._texts:
            if field not in spelling and (found := text.spelling(key, is_written=is_written)):
                spelling[field] = found
        return spelling or {self._unread: unread}

    def has(self, stem: str) -> bool:
        """Whether a stem occurs in the fields that were read."""
        return any(text.spelling(stem, is_written=False) for _, text in self._texts)

    def words(self) -> list[str]:
        """All words that were read, as the item spells them, each once and always in one order."""
        words = (pair for _, text in self._texts for pair in text.words())
        return list(dict.fromkeys(written for written, _ in words))


class Text:
    """A text in which few words are looked up: most are not divided and stemmed."""

    def __init__(self, text: str) -> None:
        self._runs = runs(text)
        # Letters in which a word of a run must occur; none if it may be joined of several parts.
        self._letters = [
            run.lower() if run.isascii() and run.isalnum() else "" for run in self._runs
        ]

    def spelling(self, key: str, *, is_written: bool) -> str:
        """The first word that is a key, or whose stem is; empty if no word is."""
        # A stem begins as its word does: the stem of "dying" and the like, ``die``, by one letter.
        first = key[: 1 if len(key) == 3 and key.endswith("ie") else 2]
        for run, letters in zip(self._runs, self._letters, strict=True):
            if letters and first not in letters:
                continue
            for written, term in spellings(run):
                if key == (written if is_written else term):
                    return written
        return ""

    def words(self) -> list[Pair]:
        """All words, each with its term, in order."""
        return [*chain.from_iterable(map(spellings, self._runs))]


# Otherwise each search would read the long texts of its hits again.
@cached(LRUCache(KEPT), lambda entry, item: (entry.id, entry.hash, item is None), Lock())
def places_of(entry: Entry, item: Item | None) -> Places:
    """The places of the terms of an item, apart from its body's."""
    return Places(entry, item)


def _texts(entry: Entry, item: Item | None) -> list[tuple[str, str]]:
    """The texts of an item, each with the name of its field, the most important first."""
    if item:
        return [(field.name, text) for field, text in fields(item)]
    return [
        ("name", " ".join(entry.names)),
        ("description", f"{entry.description} {' '.join(spoken_tags(entry))}"),
        ("server", entry.server),
    ]


def _unread_field(entry: Entry, item: Item | None) -> str:
    """The field of a term that occurs in none that were read; empty if it may be any."""
    if item is None and len(entry.description) >= SHOWN_DESCRIPTION:
        return ""  # the entry's description is cut
    return "parameters" if entry.kind is Kind.TOOL else "body"
