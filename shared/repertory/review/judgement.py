"""Decides from the source's setting and the rules whether agents see an item. Pure."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from repertory.catalogue.item import Item
from repertory.review.suspicions import Finding, suspicions
from repertory.review.suspicious_changes import suspicious_changes
from repertory.sources.source import Trust


class State(StrEnum):
    """The review state of an item's content."""

    APPROVED = "approved"
    NEW = "new"
    CHANGED = "changed"
    QUARANTINED = "quarantined"


class Judgement(msgspec.Struct, frozen=True):
    """The state of an item, and the findings of the rules."""

    state: State
    findings: list[Finding] = []


def judge(
    item: Item,
    approved: Item | None,
    trust: Trust,
    *,
    is_first: bool = False,
    is_vouched_for: bool = False,
    more: Sequence[Finding] = (),
    own: Sequence[Finding] | None = None,
) -> Judgement:
    """Decide about an item that is new or has changed.

    Args:
        item: The item as it is now.
        approved: The version that was approved; None if no version was.
        trust: The setting of its source.
        is_first: Whether this is the first scan of its source.
        is_vouched_for: Whether a person trusted the source itself, such as an MCP server. If so,
            the items of its first scan are approved.
        more: Findings from before the item was cleaned.
        own: The suspicions in the item, if already known.
    """
    is_trusted = trust is Trust.TRUSTED or (trust is Trust.REVIEW and is_first and is_vouched_for)
    if is_trusted or approved is None:
        found = [*(suspicions(item) if own is None else own), *more]
    else:
        found = [*suspicious_changes(item, approved), *more]
    if is_trusted:
        return Judgement(State.APPROVED, found)
    if found or trust is Trust.QUARANTINE:
        return Judgement(State.QUARANTINED, found)
    if is_first:
        return Judgement(State.APPROVED)
    return Judgement(State.NEW if approved is None else State.CHANGED)


def fits(judgement: Judgement, trust: Trust) -> bool:
    """Whether an earlier judgement is still valid under the current setting of its source."""
    state = judgement.state
    if trust is Trust.TRUSTED:
        return state is State.APPROVED
    if trust is Trust.QUARANTINE:
        return state in (State.APPROVED, State.QUARANTINED)
    return state is not State.QUARANTINED or bool(judgement.findings)
