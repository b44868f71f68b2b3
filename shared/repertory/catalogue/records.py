"""Items as they are stored: records, which another release may have written in another form."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from repertory.catalogue.item import Item

_log = logging.getLogger(__name__)


def items_of(records: Iterable[Mapping[str, Any]]) -> Iterator[Item]:
    """The items of some records. One that cannot be read is logged and left out."""
    for record in records:
        try:
            yield msgspec.convert(record, Item)
        except msgspec.ValidationError as error:
            extra = {"item": record.get("id"), "error": str(error)}
            _log.warning("record_unreadable", extra=extra)
