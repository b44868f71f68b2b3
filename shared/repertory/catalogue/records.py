"""Items as they are stored: records, which another release may have written in another form."""

import contextlib
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


def items_of_json(records: Iterable[str]) -> Iterator[Item]:
    """The items of some records as JSON.

    One that cannot be read is left out, and not logged: who asks for it reads its record.
    """
    for record in records:
        with contextlib.suppress(msgspec.DecodeError):
            yield msgspec.json.decode(record, type=Item)
