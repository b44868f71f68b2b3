"""The catalogue of the searched collection, which may belong to another configuration."""

from repertory.indexing.collection_names import configuration_of
from repertory.sources.configured import Catalogue
from repertory.watch_status import WatchStatus


class SearchedCatalogue:
    """What is known about the catalogue of the active collection.

    Args:
        last: The last report of an earlier process.

    Attributes:
        audiences: Who may see its sources, by name; empty if unknown.
    """

    def __init__(self, last: WatchStatus) -> None:
        self._configuration = configuration_of(last.collection)
        is_reported = bool(last.former) or last.configuration == self._configuration
        self.audiences = last.searched if is_reported else {}
        self._catalogue = Catalogue(())  # empty if unknown

    def follow(self, configuration: str, catalogue: Catalogue | None) -> None:
        """Record the catalogue of the active collection, or forget that of another collection.

        Args:
            configuration: The configuration of the active collection; empty without one.
            catalogue: Its catalogue; None if it is not the current one.
        """
        if catalogue is not None:
            self._configuration, self._catalogue = configuration, catalogue
            self.audiences = {one.name: one.visible_to for one in catalogue.sources}
        elif configuration not in {"", self._configuration}:
            self._catalogue, self.audiences = Catalogue(()), {}

    def identical(self, catalogue: Catalogue) -> frozenset[str]:
        """The names of the sources of a new catalogue that are identical in this one."""
        known = {source.name: source.identity() for source in self._catalogue.sources}
        return frozenset(
            one.name for one in catalogue.sources if known.get(one.name) == one.identity()
        )

    def heirs(self, catalogue: Catalogue) -> frozenset[str]:
        """The names of the sources of a new catalogue that may keep the items of their namesakes.

        These are the identical sources, and those that no further callers may see. If the former
        audiences are unknown, they are all sources, or only the identical ones if any source is
        restricted.
        """
        sources = catalogue.sources
        if not self.audiences and any(one.visible_to for one in sources):
            return self.identical(catalogue)
        lists = [(one.name, {*one.visible_to}, self.audiences.get(one.name)) for one in sources]
        return self.identical(catalogue).union(
            name for name, own, old in lists if not old or (own and own.issubset(old))
        )
