"""The failed items: read when they change, and forgotten when they are obsolete."""

from collections.abc import Callable, Mapping

from repertory.coordination.failures import Failure, Failures


class FailedItems:
    """Follows the failures. While nothing changes, a check is one short request."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._version: str | None = None
        self._items: dict[str, dict[str, str]] = {}
        self._without_items: list[Failure] = []  # unreadable jobs, and requests

    def read(self) -> None:
        """Read the failures if they have changed."""
        version = self._failures.version()
        if version != self._version:
            self._items = self._failures.failed_items()
            self._without_items = [one for one in self._failures.list() if not one.items]
            self._version = version

    def of(self, collection: str) -> Mapping[str, str]:
        """The failed hashes of a collection, by item."""
        return self._items.get(collection, {})

    def forgive(self, is_obsolete: Callable[[str, str, str], bool]) -> None:
        """Forget obsolete items, and failures with only such items.

        Args:
            is_obsolete: Called with a collection, an item and its hash.
        """
        obsolete = {
            collection: [
                item for item, found in hashes.items() if is_obsolete(collection, item, found)
            ]
            for collection, hashes in self._items.items()
        }
        if not any(obsolete.values()):
            return
        for collection, items in obsolete.items():
            self._failures.forgive(collection, items)
            for item in items:
                del self._items[collection][item]
        self._failures.remove(
            [
                failure.id
                for failure in self._failures.list()
                if failure.items
                and not any(
                    self.of(failure.collection).get(item) == found
                    for item, found in failure.items.items()
                )
            ]
        )

    def settle(self, is_over: Callable[[Failure], bool]) -> None:
        """Remove failures without items that are over."""
        if over := [one.id for one in self._without_items if is_over(one)]:
            self._failures.remove(over)
            self._without_items = [one for one in self._without_items if one.id not in over]
