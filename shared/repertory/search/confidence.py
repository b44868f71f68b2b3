"""From evidence to one number: the score that orders hits, and the confidence shown for it.

A score compares an item with the query. A confidence is how often a first hit with such signals is
the right one, as people labelled it; of the others, it falls with their scores. So it rises with
the score, and the confidences of an answer fall down its list.
"""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.embedding.models import Curve
from repertory.index.keywords.names import EXACT, FEW_BEGUN, ONE_EDIT
from repertory.index.keywords.tokens import word_count
from repertory.search.answer import Mode
from repertory.search.candidates import Candidates

Values = NDArray[np.float32]

NAME_FROM = 0.5  # names less alike than this are not alike
# Long queries match no item perfectly. Dividing by a part of the best match that there is keeps
# their words from counting for nothing beside the semantic arm.
BEST = 0.85

# Words are the same whatever the model, so this curve belongs to none; fitted like the others.
KEYWORD = Curve(margin=7.43, length=1.16, shared=0.57, bias=-4.14)
# A hit is as sure as the first would be, less for the distance of its score from the first's: near
# ones are alternatives, far ones are not lifted by a first hit that is certain.
SURE_ENOUGH = 5.0  # log odds of a first hit beyond which it does not lift the others
FALL = 30.0  # log odds that a hit loses with the square of the distance

# What speaks for the best: its calibrated cosine, half its share of a perfect keyword match, how
# like its name is. Right first hits of the labelled sets have more than this; a long query that
# belongs to another catalogue has less, and however far ahead its best is, it is not the answer.
LEAST = 0.3
LACKING = 15.0  # log odds that a first hit loses with what is lacking

CROWD = slice(3, 10)  # the places that the best is compared with: up to three may fit as well
EMPTY = 0.1  # the score of a place that a small catalogue leaves empty

MOST = 0.97  # what no evidence exceeds but a name that was typed
SURE = 0.98  # the least confidence of one typed exactly
MISSPELT = 0.975  # … with one edit; one begun by few exceeds ``MOST`` alone
CLOSE = 0.85  # … begun as many are, and nearly whole
BEGUN = 0.4  # … only just begun; or what was typed is a word of names, and so perhaps that word
AHEAD = 2  # how many of the others come before the names, if they are few, that such a word begins
TIE = 0.0002  # what the other evidence adds at most
SHARED = 0.5  # … of what has the words of names that a query consists of, as far as can be told
SHARED_FROM = 0.6  # the share of a perfect match of those words


def likeness(similarity: Values) -> Values:
    """How much names of a similarity to the query are like it, 0…1; 0 below ``NAME_FROM``."""
    like: Values = np.maximum((similarity - NAME_FROM) / (1.0 - NAME_FROM), 0.0)
    return like


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """What of an answer tells whether its first hit is right.

    Attributes:
        margin: How far the score of the best is above the mean of the fourth to the tenth, items of
            one name counted once. Where the right item is missing, many fit a little.
        length: The logarithm of how many words the query has: long ones match nothing closely.
        shared: The share of the query that the best has, 0…1: of its terms, or of its letters if it
            is like the name.
    """

    margin: float
    length: float
    shared: float


def scores(found: Candidates) -> Values:
    """The score of each candidate, which orders them: about 0…1, more for a name that was typed."""
    semantic, keyword = found.semantic, found.keyword
    boost = found.query.weights.name_weight * likeness(found.similarity)
    if found.mode is Mode.KEYWORD:
        return keyword + boost
    if found.mode is Mode.SEMANTIC:
        return semantic + boost
    best = max(float(keyword.max(initial=0.0)), 0.01)
    alpha = found.query.weights.alpha
    score: Values = alpha * semantic + (1 - alpha) * keyword / best**BEST + boost
    return score


def signals(found: Candidates, score: Values) -> Signals:
    """The signals of an answer with at least one candidate, whose scores are given."""
    best = int(score.argmax())
    by_name: dict[str, float] = {}
    # The best of each name is written last.
    for value, row in sorted(zip(score.tolist(), found.rows.tolist(), strict=True)):
        by_name[found.index.entries[row].compact] = value
    crowd = sorted(by_name.values(), reverse=True)[CROWD]
    crowd += [EMPTY] * (CROWD.stop - CROWD.start - len(crowd))
    has = [
        any(found.index.holds(number, int(found.rows[best])) for number in term.rows)
        for term in found.terms
    ]
    return Signals(
        margin=float(score[best]) - sum(max(one, EMPTY) for one in crowd) / len(crowd),
        length=math.log(word_count(found.query.text)),
        shared=max(sum(has) / max(len(has), 1), float(likeness(found.similarity)[best])),
    )


def curve_of(found: Candidates) -> Curve:
    """The curve for the arms that answered."""
    if found.mode is Mode.KEYWORD:
        return KEYWORD
    calibration = found.calibration
    return calibration.hybrid if found.mode is Mode.HYBRID else calibration.semantic


def confidences(found: Candidates, score: Values, curve: Curve | None = None) -> Values:
    """The confidence of each candidate, 0…1, by the scores and the model's curve, or another."""
    if not len(found.rows):
        return np.zeros(0, np.float32)
    curve = curve or curve_of(found)
    seen = signals(found, score)
    first = (
        curve.margin * seen.margin
        + curve.length * seen.length
        + curve.shared * seen.shared
        + curve.bias
    )
    first -= LACKING * max(LEAST - _evidence(found, int(score.argmax())), 0.0)
    odds = np.exp(min(first, SURE_ENOUGH) - FALL * (score.max() - score) ** 2)
    confidence: Values = MOST * odds / (1.0 + odds)
    shared = np.where(
        found.shared >= SHARED_FROM, SHARED + 0.04 * found.shared + 0.1 * confidence, 0.0
    )
    confidence = np.maximum(confidence, shared)
    if found.close.any():
        confidence = np.maximum(confidence, _floor(found, confidence))
    return confidence.astype(np.float32)


def _evidence(found: Candidates, place: int) -> float:
    """What speaks for a candidate, whatever else there is; enough where words are all there is."""
    if found.mode is Mode.KEYWORD:
        return LEAST
    like = float(likeness(found.similarity)[place])
    return float(found.semantic[place]) + float(found.keyword[place]) / 2 + like


def _floor(found: Candidates, confidence: Values) -> Values:
    """The least confidence that a typed name deserves; the other evidence breaks ties."""
    close = found.close
    misspelt, few, begun = MISSPELT, MOST, BEGUN + (CLOSE - BEGUN) * close
    if found.is_word:
        misspelt, begun = BEGUN, np.full_like(close, BEGUN)
        ahead = np.sort(confidence[close < FEW_BEGUN])[-AHEAD:]
        few = max(BEGUN, float(ahead[0]) - 2 * TIE) if len(ahead) == AHEAD else BEGUN
    floor = np.select(
        [close >= EXACT, close >= ONE_EDIT, close >= FEW_BEGUN, close > 0.0],
        [SURE, misspelt, few, begun],
        0.0,
    )
    least: Values = np.where(close > 0.0, floor + TIE * confidence, 0.0)
    return least
