"""Names found as they are typed: exact, prefix, any case and separators, one edit."""

import re
from collections.abc import Iterator
from heapq import nsmallest
from itertools import islice

from repertory.catalogue.names import compact_name, digits, signs
from repertory.index.keywords.part import Part
from repertory.index.keywords.parts import Parts

MIN_PREFIX_LENGTH = 3  # characters; one less in other scripts than ASCII, whose signs say more
MAX_COMPLETIONS = 100  # as many as either arm finds
MAX_SPELT = 500  # items of one name whose spellings are compared; tens of thousands may be `README`
MAX_ID_WORDS = 6  # of a query that is looked up among ids

# How similar the typed text is to a name. All are exact as 32-bit numbers.
EXACT = 1.0
UNPREFIXED = 0.9375  # the name without the words of its server
ALSO = 0.90625  # another spelling of the name, or an alias, where another item has what was typed
ONE_MORE = 0.890625  # the name without its last letter
ONE_EDIT = 0.875
BEGUN = 0.75  # the beginning of a name: so much of the share that was typed

_OF_HOST = re.compile(r"^\s*mcp__(?=\w+__\w)", re.IGNORECASE)
_LAST_LETTER = re.compile(r"[^\W_][\W_]+[^\W_]\s*$")


class NameIndex:
    """Looks names up by their letters and digits alone; ids and aliases count as names too."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def exact(self, typed: str) -> list[int]:
        """The rows whose name or id is the typed one, in any case and with any separators.

        If no item has it, the rows of which it is an alias.
        """
        keys = {compact_name(one): None for one in _spelt(typed)}
        tables = ("names", "ids") if len(typed.split()) <= MAX_ID_WORDS else ("names",)
        own = {row: None for key in keys for table in tables for row in self._under(table, key)}
        return [*own] or [row for key in keys for row in self._under("aliases", key)]

    def close(self, typed: str) -> dict[int, float]:
        """The rows of names similar to the typed one, each with its similarity, 0…1.

        ``EXACT`` is the name itself, ``UNPREFIXED`` the name without the words of its server,
        ``ALSO`` another spelling of it, ``ONE_MORE`` a name of which the last letter is missing,
        ``ONE_EDIT`` any other name one edit away, unless the last letter begins a word:
        ``search_c`` is not ``search``. A name of which only the beginning was typed counts by the
        share that was typed, below ``BEGUN``.
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
    """The names and aliases of a part that start with the key and are longer, by their bytes."""
    names = part.segment.names
    for table in (names.names, names.aliases):
        longer = (name for name in part.beginning_with(key, table) if name != key)
        yield from islice(longer, MAX_COMPLETIONS)


def _spelt(typed: str) -> tuple[str, str]:
    """A name without the beginning that agent hosts give the tools of their MCP servers, and whole.

    Few names have this beginning themselves.
    """
    return _OF_HOST.sub("", typed).strip(), typed.strip()


def _begins_a_word(typed: str) -> bool:
    """Whether a text ends with the first letter of a word, but not of the only one."""
    return _LAST_LETTER.search(typed) is not None


def _min_prefix_length(key: str) -> int:
    """The length from which a key is looked up as the beginning of a name."""
    return MIN_PREFIX_LENGTH - (not key.isascii())
