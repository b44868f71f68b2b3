"""The JSON of reviews in the HTTP API."""

from typing import Annotated

import msgspec
from msgspec import Meta

from repertory.review.store import VERSION_LENGTH, Event, Review, ReviewStore

MAX_APPROVED = 1_000  # items of one request
_AT_VERSION = f"@[0-9a-f]{{{VERSION_LENGTH}}}$"  # described only: ``check_bound`` says what to do


class Reviews(msgspec.Struct, frozen=True, kw_only=True):
    """The items that wait for a person, those in quarantine first."""

    reviews: list[Review]
    waiting: Annotated[
        int, Meta(description="How many wait; the list has the first 500 of them.")
    ] = 0  # of servers of an older release

    @classmethod
    def of(cls, store: ReviewStore) -> "Reviews":
        """What waits in a store."""
        return cls(reviews=store.waiting(), waiting=store.count())

    @property
    def left_out(self) -> str:
        """How many of those that wait are listed, if not all are; empty otherwise."""
        shown = len(self.reviews)
        return f"{shown:,} of {self.waiting:,} items shown" if shown < self.waiting else ""


class Approve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The items to approve."""

    items: Annotated[
        list[Annotated[str, Meta(extra_json_schema={"pattern": _AT_VERSION})]],
        Meta(
            description="Each as ID@VERSION, with the version that `GET /reviews` shows: no other "
            "version is approved.",
            examples=[["notes__add_note@5f1d7a84c2e9"]],
            max_length=MAX_APPROVED,
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
