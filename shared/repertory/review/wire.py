"""The JSON of reviews in the HTTP API."""

from typing import Annotated

import msgspec
from msgspec import Meta

from repertory.review.store import Event, Review

MAX_APPROVED = 1_000  # items of one request


class Reviews(msgspec.Struct, frozen=True, kw_only=True):
    """The items that wait for a person, those in quarantine first."""

    reviews: list[Review]


class Approve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The items to approve."""

    items: Annotated[
        Annotated[list[str], Meta(max_length=MAX_APPROVED)] | None,
        Meta(
            description="Their ids, or ID@VERSION to approve no other version; null for all.",
            examples=[["notes__add_note", "notes__find@5f1d7a84c2e9"]],
        ),
    ]


class Approved(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of the items that waited and are approved now."""

    items: list[str]


class Which(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An item."""

    item: Annotated[str, Meta(description="Its id.")]


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to an item, the latest last."""

    events: list[Event]
