"""What was last seen of every source: the items that the index is to hold."""

from collections import Counter
from typing import Any

from repertory.catalogue.item import Item
from repertory.index.vectors import State
from repertory.indexing.scan import Scanned, unite
from repertory.sources.catalogue import Catalogue
from repertory.sources.source import Problem

SUDDENLY_EMPTY = "It is suddenly empty; its items are kept until `repertory rebuild`."


class Looks:
    """A catalogue and the last look at each of its sources. Pure: no input or output.

    Attributes:
        catalogue: The catalogue.
        items: What all sources offer together, by id.
    """

    def __init__(self) -> None:
        self.catalogue = Catalogue(())
        self.items: dict[str, Item] = {}
        self._by_source: dict[str, Scanned] = {}
        self._seen: dict[str, float] = {}
        self._problems: list[Problem] = []

    def adopt(self, catalogue: Catalogue) -> None:
        """Take a catalogue over; what was seen of sources that are the same still holds."""
        same = {source.name: source.identity() for source in catalogue.sources}
        self._by_source = {
            name: one
            for name, one in self._by_source.items()
            if same.get(name) == one.source.identity()
        }
        self.catalogue = catalogue
        self._unite()

    def add(self, look: Scanned) -> None:
        """Take a look over; one at a source that the catalogue has no more is passed over."""
        name = look.source.name
        if name not in self._names:
            return
        self._by_source[name] = look
        if not look.error:
            self._seen[name] = look.at
        self._unite()

    @property
    def is_complete(self) -> bool:
        """Whether every source was looked at."""
        return len(self._by_source) == len(self.catalogue.sources)

    @property
    def problems(self) -> list[Problem]:
        """Everything that was wrong."""
        return [*self.catalogue.problems, *self._problems]

    def offers(self, item: str, metadata_hash: str) -> bool:
        """Whether an item is as it was; an empty hash asks whether it is gone."""
        found = self.items.get(item)
        return (found.metadata_hash() if found else "") == metadata_hash

    def keeps(self, state: State) -> bool:
        """Whether an indexed item that was not read may be there all the same."""
        look = self._by_source.get(state.source)
        return look.keeps(state.item) if look else state.source in self._names

    def withholds(self, state: State) -> bool:
        """Whether an item could not be read though its source was looked at."""
        look = self._by_source.get(state.source)
        return look is not None and look.is_partial and look.keeps(state.item)

    @property
    def is_partial(self) -> bool:
        """Whether something could not be read."""
        return any(look.is_partial for look in self._by_source.values())

    def status(self, indexed: Counter[str], emptied: frozenset[str]) -> list[dict[str, Any]]:
        """How each source is, as plain data.

        Args:
            indexed: How many items of each source are indexed.
            emptied: The sources that offer nothing any more.
        """
        offered = Counter(item.source for item in self.items.values())
        states = []
        for source in self.catalogue.sources:
            name = source.name
            look = self._by_source.get(name)
            error = SUDDENLY_EMPTY if name in emptied else look.error if look else ""
            partial = look is not None and (look.is_partial or name in emptied)
            states.append(
                {
                    "name": name,
                    "type": source.type,
                    "location": source.location,
                    "items": indexed[name],
                    "stale": max(indexed[name] - offered[name], 0) if partial else 0,
                    "error": error,
                    "seen": self._seen.get(name, 0.0),
                }
            )
        return states

    @property
    def _names(self) -> set[str]:
        return {source.name for source in self.catalogue.sources}

    def _unite(self) -> None:
        sources = self.catalogue.sources
        looks = [self._by_source[one.name] for one in sources if one.name in self._by_source]
        self.items, self._problems = unite(looks, self.catalogue)
