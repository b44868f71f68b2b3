"""Stored items: records that another release may have written in a different form."""

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from repertory.catalogue.item import Item

_log = logging.getLogger(__name__)


def items_of(records: Iterable[Mapping[str, Any]]) -> Iterator[Item]:
    """The items in some records. Unreadable records are logged and skipped."""
    for record in records:
        try:
            yield msgspec.convert(record, Item)
        except msgspec.ValidationError as error:
            extra = {"item": record.get("id"), "error": str(error)}
            _log.warning("record_unreadable", extra=extra)


def items_of_json(records: Iterable[str]) -> Iterator[Item]:
    """The items in some JSON records.

    Unreadable ones are skipped but not logged, because the caller then reads the stored record.
    """
    for record in records:
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            yield msgspec.json.decode(record, type=Item)
