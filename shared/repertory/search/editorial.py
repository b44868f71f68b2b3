"""Policies applied: what people decided about items moves their confidence, and is told.

It moves the same number that orders hits. A name that was typed exactly stays sure: only what the
configuration pins for just that query comes before it.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping

import msgspec

from repertory.catalogue.policy import Policy
from repertory.index.keywords.names import EXACT, FEW_BEGUN
from repertory.index.keywords.policies import Pin
from repertory.index.keywords.tokens import terms
from repertory.search.candidates import Candidates, Values
from repertory.search.confidence import MOST, SURE
from repertory.text import cut

# The least confidence of a pinned item; its own breaks ties.
PINNED_ALONE = 0.995  # where the query is the phrase and nothing else: above any name
PINNED = SURE - 0.0005  # above all but names that were typed exactly
PINNED_BY_AUTHOR = 0.85
TIE = 0.0004

# In boosts. One multiplies the odds by e²: an item for which nothing else speaks stays below the
# default threshold.
STRENGTH = 2.0
DEPRECATED = -0.5
UNFIT = -1.0

PART = 0.4  # the share of a query that must be of what an item is not for
MOST_TOLD = 120  # characters of an author's text


class Edited(msgspec.Struct, frozen=True):
    """Confidences under the policies, and what each policy did, by place."""

    confidence: Values
    notes: Mapping[int, list[str]] = {}


def edited(found: Candidates, confidence: Values) -> Edited:
    """Apply the policies of what was found.

    Args:
        found: The candidates; what is pinned and what replaces another are among them.
        confidence: The confidence of each.
    """
    policies = found.index.policies
    with_one = {
        place: policies.of[row]
        for place, row in enumerate(found.rows.tolist() if policies.of else ())
        if row in policies.of
    }
    if not with_one:
        return Edited(confidence)
    result = confidence.copy()
    notes: defaultdict[int, list[str]] = defaultdict(list)
    pins = policies.pinned(found.query.text)
    for place, policy in with_one.items():
        pin = pins.get(int(found.rows[place]))
        result[place], notes[place] = _judged(found, place, float(result[place]), policy, pin)
    _replace(found, [place for place, one in with_one.items() if one.deprecated_by], result, notes)
    return Edited(result, notes)


def _judged(
    found: Candidates, place: int, confidence: float, policy: Policy, pin: Pin | None
) -> tuple[float, list[str]]:
    """The confidence of one candidate by what its policy says of itself, and the notes."""
    notes = []
    if not _is_typed(found, place):
        if policy.boost:
            confidence = boosted(confidence, policy.boost)
            moved = "Raised" if policy.boost > 0 else "Lowered"
            notes.append(f"{moved} by its policy ({policy.boost:+g})")
        if policy.when_not_to_use and _is_unfit(found, place):
            confidence = boosted(confidence, UNFIT)
            notes.append(f"When not to use it: “{cut(policy.when_not_to_use, MOST_TOLD)}”")
    if pin:
        confidence = max(confidence, _least(found, pin) + TIE * confidence)
        notes.append(f"Pinned for “{pin.phrase}”")
    return confidence, notes


def _is_typed(found: Candidates, place: int) -> bool:
    """Whether the name was typed, so that it stays as sure as that makes it."""
    close = found.close[place]
    return bool(close >= EXACT or (close >= FEW_BEGUN and not found.is_word))


def boosted(confidence: float, boost: float) -> float:
    """A confidence with its odds moved; no boost makes it more than evidence does."""
    within = min(max(confidence, 1e-6), 1 - 1e-6)
    odds = within / (1 - within) * math.exp(STRENGTH * boost)
    return min(odds / (1 + odds), max(MOST, confidence))


def _is_unfit(found: Candidates, place: int) -> bool:
    """Whether a good part of the query is of what an item is not for, and not of what it is for."""
    against = found.index.policies.against(int(found.rows[place]))
    unfit = sum(term.idf for term in found.terms if not against.isdisjoint(terms(term.typed)))
    return unfit >= PART * sum(term.idf for term in found.terms) > 0


def _least(found: Candidates, pin: Pin) -> float:
    """The least confidence that a pin gives."""
    if not pin.is_vouched:
        return PINNED_BY_AUTHOR
    return PINNED_ALONE if pin.terms == {*terms(found.query.text)} else PINNED


def _replace(
    found: Candidates, deprecated: Collection[int], confidence: Values, notes: dict[int, list[str]]
) -> None:
    """Put what is deprecated behind its successor, which is as sure as that was.

    Where nothing else was typed exactly, a deprecated name that was stays first.

    Args:
        found: The candidates.
        deprecated: The places of what is deprecated.
        confidence: Changed in place.
        notes: Changed in place.
    """
    exact = found.close >= EXACT
    stays = not exact[[place for place in range(len(exact)) if place not in deprecated]].any()
    successors = found.index.policies.successors
    place_of = {row: place for place, row in enumerate(found.rows.tolist())}
    for place in deprecated:
        entry, before = found.entry(place), float(confidence[place])
        if stays and exact[place]:
            before = min(before, MOST)
        else:
            confidence[place] = boosted(before, DEPRECATED)
        if entry.policy:
            notes[place].insert(0, f"Deprecated, use {entry.policy.deprecated_by}")
        successor = place_of.get(successors.get(int(found.rows[place]), -1))
        # It may be nowhere, filtered out, or surer by itself.
        if successor is not None and confidence[successor] < before:
            confidence[successor] = before
            notes[successor].append(f"Instead of {entry.name}, which is deprecated")
