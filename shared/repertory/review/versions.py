"""The version of an item, which an approval can be bound to."""

import hashlib
import re
from collections.abc import Iterable

import msgspec

from repertory.catalogue.item import Item
from repertory.errors import UsageError

VERSION_LENGTH = 12  # characters of a digest
_BOUND = re.compile(rf"@[0-9a-f]{{{VERSION_LENGTH}}}\Z")


def approval_digest(item: Item) -> str:
    """The digest of everything that the author wrote, which is what an approval covers."""
    covered: list[object] = [
        item.name,
        item.description,
        item.body,
        item.tags,
        item.input_schema,
        item.output_schema,
        item.extra,
    ]
    if item.policy:  # the author's; policies from configurations are applied after the review
        covered.append(item.policy)
    return hashlib.sha256(msgspec.json.encode(covered, order="deterministic")).hexdigest()


def is_bound(item: str) -> bool:
    """Whether an item to approve is given with a version, as ``ID@VERSION``."""
    return _BOUND.search(item) is not None


def check_bound(items: Iterable[str]) -> None:
    """Check that each item to approve is given with a version.

    Raises:
        UsageError: An item has no version.
    """
    for item in items:
        if not is_bound(item):
            raise UsageError(f"{item} names no version; give ID@VERSION, as GET /reviews shows it.")
