"""The JSON of reviews in the HTTP API."""

from typing import Annotated

import msgspec
from msgspec import Meta

from repertory.review.judgement import State
from repertory.review.suspicions import Finding
from repertory.review.versions import VERSION_LENGTH

MAX_APPROVED = 1_000  # items in one request
# For the description only. ``check_bound`` checks it, with a message that says what to do.
_AT_VERSION = f"@[0-9a-f]{{{VERSION_LENGTH}}}$"


class Review(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An item that waits for a person.

    Attributes:
        item: Its id.
        source: Its source.
        state: ``quarantined`` if agents do not see it, else ``new`` or ``changed``.
        version: The start of its content's digest; an approval can be bound to it.
        at: When it got this content, in Unix seconds.
        findings: The findings of the rules.
        diff: Its change since the approved version, as lines of a unified diff; its whole text if
            it was never approved.
    """

    item: str
    source: str
    state: State
    version: str
    at: float
    findings: list[Finding]
    diff: list[str]

    @property
    def as_shown(self) -> str:
        """``ID@VERSION``, which approves this version alone."""
        return f"{self.item}@{self.version}"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event in the history of an item.

    Attributes:
        source: The source of the item.
        at: When, in Unix seconds.
        what: ``appeared``, ``changed``, ``reviewed`` (under another setting), ``approved``, or
            ``gone`` before approval; with the suffix ``, in quarantine`` if the event put it there.
        who: Who approved it; empty for other events.
        diff: The change, as lines of a unified diff.
    """

    source: str
    at: float
    what: str
    who: str
    diff: list[str]


class Reviews(msgspec.Struct, frozen=True, kw_only=True):
    """The items that wait for a person, those in quarantine first."""

    reviews: list[Review]
    waiting: Annotated[
        int, Meta(description="The number of waiting items; the list has the first 500.")
    ] = 0  # the default is for answers of older servers

    @property
    def left_out(self) -> str:
        """How many of the waiting items are listed; empty if all are."""
        shown = len(self.reviews)
        return f"{shown:,} of {self.waiting:,} items shown" if shown < self.waiting else ""


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class ApprovedItems(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of the waiting items that are now approved."""

    items: list[str]


class ItemId(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The item of a history."""

    item: Annotated[str, Meta(description="The id of the item.")]


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The events of an item, latest last."""

    events: list[Event]
