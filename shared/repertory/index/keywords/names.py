"""Looks up names: exact, by prefix, in any case and with any separators, or one edit away."""

import re
from collections.abc import Iterator
from heapq import nsmallest
from itertools import islice

from repertory.catalogue.names import compact_name, digits, signs
from repertory.index.keywords.parts import Part, Parts

MIN_PREFIX_LENGTH = 3  # characters; one less in scripts other than ASCII
MAX_COMPLETIONS = 100  # as many as either arm finds
MAX_SPELT = 500  # namesakes whose spellings are compared; tens of thousands may be `README`
MAX_ID_WORDS = 6  # longer queries are not looked up among ids

# How similar the typed text is to a name. All values are exact as 32-bit floats.
EXACT = 1.0
UNPREFIXED = 0.9375  # the name without the words of its server
ALSO = 0.90625  # another spelling of the name, or an alias, while another item has the typed name
ONE_MORE = 0.890625  # the name without its last letter
ONE_EDIT = 0.875
OTHER_WORD = 0.8125  # one edit away, but another word; see ``similar_names``
BEGUN = 0.75  # the beginning of a name; multiplied by the share that was typed

_OF_HOST = re.compile(r"^\s*mcp__(?=\w+__\w)", re.IGNORECASE)
_LAST_LETTER = re.compile(r"[^\W_][\W_]+[^\W_]\s*$")


class NameIndex:
    """Looks up names by their letters and digits only. Ids and aliases count as names."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def exact(self, typed: str) -> list[int]:
        """The rows with the typed name or id, in any case and with any separators.

        If no item has it, the rows with the typed alias.
        """
        keys = {compact_name(one): None for one in _spelt(typed)}
        tables = ("names", "ids") if len(typed.split()) <= MAX_ID_WORDS else ("names",)
        own = {row: None for key in keys for table in tables for row in self._under(table, key)}
        return [*own] or [row for key in keys for row in self._under("aliases", key)]

    def close(self, typed: str) -> dict[int, float]:
        """The rows of names similar to the typed one, each with its similarity, 0…1.

        ``EXACT`` is the name itself, ``UNPREFIXED`` the name without the words of its server,
        ``ALSO`` another spelling, ``ONE_MORE`` a name without its last letter, and ``ONE_EDIT`` any
        other name one edit away. But a last letter that begins a word is not an edit: ``search_c``
        does not match ``search``. A name with only its beginning typed gets ``BEGUN`` times the
        share that was typed.
        """
        spelt = _spelt(typed)
        key = compact_name(spelt[0])
        found: dict[int, float] = {}
        for name in self._begun(key):
            like = BEGUN * len(key) / len(name)
            for row in self._known_as(name):
                found[row] = max(like, found.get(row, 0.0))
        near = {
            name
            for part in self._parts.all
            for name in part.segment.names.one_edit.near(key)
            if (digits(name), signs(name)) == (digits(key), signs(key))
        }
        if _begins_a_word(typed):
            near.discard(key[:-1])
        for name in near:
            like = ONE_MORE if name.startswith(key) else ONE_EDIT
            for row in self._known_as(name):
                found[row] = max(like, found.get(row, 0.0))
        found |= dict.fromkeys(self._under("unprefixed", key), UNPREFIXED)
        exact = self.exact(typed)
        # If an alias equals another item's name, that item ranks first.
        found |= dict.fromkeys(self._under("aliases", key), ALSO)
        found |= dict.fromkeys(exact, EXACT)
        compared = exact if len(exact) <= MAX_SPELT else []
        identical = [row for row in compared if not {*spelt}.isdisjoint(self._spellings(row))]
        if identical:  # the exact spelling beats other spellings of the same letters
            found |= dict.fromkeys(exact, ALSO)
            found |= dict.fromkeys(identical, EXACT)
        return found

    def _under(self, table: str, key: str) -> list[int]:
        """The rows under a key in one of the tables."""
        return [
            row
            for part in self._parts.all
            for row in part.rows(getattr(part.segment.names, table).under(key)).tolist()
        ]

    def _known_as(self, key: str) -> list[int]:
        return self._under("names", key) + self._under("aliases", key)

    def _spellings(self, row: int) -> tuple[str, ...]:
        entry = self._parts.entry(row)
        return entry.id, *entry.names

    def _begun(self, key: str) -> list[str]:
        """The shortest names and aliases that start with the key and are longer."""
        if len(key) < _min_prefix_length(key):
            return []
        begun = {name for part in self._parts.all for name in _shortest(part, key)}
        return nsmallest(MAX_COMPLETIONS, begun, key=lambda name: (len(name.encode()), name))


def _shortest(part: Part, key: str) -> Iterator[str]:
    """The names and aliases of a part that start with the key and are longer, in byte order."""
    names = part.segment.names
    for table in (names.names, names.aliases):
        longer = (name for name in part.beginning_with(key, table) if name != key)
        yield from islice(longer, MAX_COMPLETIONS)


def _spelt(typed: str) -> tuple[str, str]:
    """A name without the prefix that agent hosts give to tools of MCP servers, and as typed.

    Few names have this prefix themselves.
    """
    return _OF_HOST.sub("", typed).strip(), typed.strip()


def _begins_a_word(typed: str) -> bool:
    """Whether a text of several words ends with a word of one letter."""
    return _LAST_LETTER.search(typed) is not None


def _min_prefix_length(key: str) -> int:
    """The minimum length of a key that is looked up as a prefix."""
    return MIN_PREFIX_LENGTH - (not key.isascii())
