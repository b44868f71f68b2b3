"""Applies policies to the confidence of candidates, and notes each change for the reason.

Hits are ordered by confidence. An item whose exact name was typed keeps its confidence. Only an
item that the configuration pins for exactly this query ranks before it.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from repertory.catalogue.policy import Policy
from repertory.index.keywords.names import EXACT
from repertory.index.keywords.policies import Pin
from repertory.index.keywords.query_words import plain
from repertory.index.keywords.tokens import terms
from repertory.search.candidates import Candidates
from repertory.search.confidence import MAX_UNNAMED, TIE, TYPED, Confidences, is_typed
from repertory.text import cut

# The minimum confidence of a pinned item; its own confidence breaks ties.
PINNED_ALONE = 0.995  # if the query is exactly the phrase: above any name
PINNED = TYPED - 0.0005  # above everything except exact names
PINNED_BY_AUTHOR = 0.85

# A boost of 1 multiplies the odds by e². An item without other evidence then stays below the
# default threshold.
STRENGTH = 2.0
DEPRECATED = -0.5  # the boost of a deprecated item
UNFIT = -1.0  # the boost of an item whose warning matches the query

MIN_UNFIT_SHARE = 0.4  # the share of the query's rarity that must occur in an item's warning
MAX_NOTE_LENGTH = 120  # characters of an author's text


def apply_policies(
    found: Candidates, confidence: Confidences
) -> tuple[Confidences, Mapping[int, Sequence[str]]]:
    """Apply the candidates' policies, including pins and successors of deprecated items.

    Returns:
        The new confidences, and the notes on the changes by place.
    """
    policies = found.index.policies
    rows = enumerate(found.rows.tolist())
    with_one = {place: policies.of[row] for place, row in rows if row in policies.of}
    if not with_one:
        return confidence, {}
    result = confidence.copy()
    notes: defaultdict[int, list[str]] = defaultdict(list)
    pins = policies.pinned(found.query.text)
    typed = is_typed(found)
    for place, policy in with_one.items():
        if not typed[place]:  # a typed name keeps its confidence
            before = float(result[place])
            result[place], notes[place] = _with_policy(found, place, before, policy)
        if pin := pins.get(int(found.rows[place])):
            result[place] = max(result[place], _least(found, pin) + TIE * result[place])
            notes[place].append(f"Pinned for “{pin.phrase}”")
    _replace(found, [place for place, one in with_one.items() if one.deprecated_by], result, notes)
    return result, notes


def _with_policy(
    found: Candidates, place: int, confidence: float, policy: Policy
) -> tuple[float, list[str]]:
    """The confidence of one candidate after its own policy, and the notes on the changes."""
    notes = []
    if policy.boost:
        confidence = boosted(confidence, policy.boost)
        moved = "Raised" if policy.boost > 0 else "Lowered"
        notes.append(f"{moved} by its policy ({policy.boost:+g})")
    if _is_unfit(found, place):
        confidence = boosted(confidence, UNFIT)
        notes.append(f"When not to use it: “{cut(policy.when_not_to_use, MAX_NOTE_LENGTH)}”")
    return confidence, notes


def boosted(confidence: float, boost: float) -> float:
    """A confidence with its odds multiplied. A boost raises it to at most ``MAX_UNNAMED``."""
    within = min(max(confidence, 1e-6), 1 - 1e-6)
    odds = within / (1 - within) * math.exp(STRENGTH * boost)
    return min(odds / (1 + odds), max(MAX_UNNAMED, confidence))


def _is_unfit(found: Candidates, place: int) -> bool:
    """Whether much of the query occurs in an item's warning, but not in its description."""
    against = found.index.policies.against(int(found.rows[place]))
    all_terms = found.matches.terms
    unfit = sum(term.rarity for term in all_terms if term.stem in against)
    return unfit >= MIN_UNFIT_SHARE * sum(term.rarity for term in all_terms) > 0


def _least(found: Candidates, pin: Pin) -> float:
    """The minimum confidence that a pin gives."""
    if not pin.is_vouched:
        return PINNED_BY_AUTHOR
    return PINNED_ALONE if pin.terms == {*terms(plain(found.query.text))} else PINNED


def _replace(
    found: Candidates,
    deprecated: Collection[int],
    confidence: Confidences,
    notes: dict[int, list[str]],
) -> None:
    """Rank deprecated items behind their successors, which take over their confidence.

    A deprecated item stays first if its exact name was typed, and no other item's was.
    ``deprecated`` has places. ``confidence`` and ``notes`` are changed in place.
    """
    exact = found.close >= EXACT
    stays = not exact[[place for place in range(len(exact)) if place not in deprecated]].any()
    successors = found.index.policies.successors
    for place in deprecated:
        entry, before = found.entry(place), float(confidence[place])
        if stays and exact[place]:
            before = min(before, MAX_UNNAMED)
        else:
            confidence[place] = boosted(before, DEPRECATED)
        if entry.policy:
            notes[place].insert(0, f"Deprecated, use {entry.policy.deprecated_by}")
        successor = found.place_of.get(successors.get(int(found.rows[place]), -1))
        # The successor may be missing, filtered out, or already have a higher confidence.
        if successor is not None and confidence[successor] < before:
            confidence[successor] = before
            notes[successor].append(f"Instead of {entry.name}, which is deprecated")
