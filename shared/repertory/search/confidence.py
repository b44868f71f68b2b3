"""From evidence to one number: the score that orders hits, and the confidence shown for it.

A score compares an item with the query. The confidence of the first hit is the probability that it
is right, calibrated on queries that people labelled; the confidence of the others falls with their
scores. So confidence rises with the score and never rises down the list.
"""

import math

import msgspec
import numpy as np

from repertory.embedding.models import Curve
from repertory.index.keywords.names import EXACT, FEW_BEGUN, ONE_EDIT
from repertory.index.keywords.tokens import word_count
from repertory.search.answer import Mode
from repertory.search.candidates import Candidates, Values

# The keyword arm is the same for every model, and so is its curve; it was fitted like the others.
KEYWORD = Curve(margin=7.43, length=1.16, shared=0.57, bias=-4.14)


class Params(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of scores and confidences.

    Scores:
        min_similarity: Names that are less similar to the query do not count.
        best_exponent: Long queries match no item perfectly. Keyword scores are divided by this
            power of the best one, so that words still count beside the semantic arm.
        min_best: The least value that counts as the best keyword score.

    The first hit:
        crowd_from, crowd_to: Its margin is over the mean of the scores from this place up to, but
            without, that one: up to three items may be equally good.
        crowd_floor: The least score of a place of the crowd, also of a missing one.
        max_log_odds: Beyond these log odds it does not lift the other hits.
        min_evidence: Evidence is the calibrated cosine, a share of the keyword score, and the
            similarity of the name. Right first hits of the labelled sets have more than this. A
            long query that belongs to another catalogue has less at any margin.
        keyword_evidence: That share.
        missing_evidence: The log odds lost per unit of missing evidence.

    Other hits:
        fall: The log odds lost with the square of the distance to the first score. Near hits are
            alternatives; a certain first hit does not lift far ones.
        max_unnamed: The confidence that no evidence but a typed name exceeds.

    Items with the words of names of which a query consists, as far as is known:
        shared_from: They count from this share of a perfect match of those words.
        shared: Their least confidence,
        shared_by_match: plus this much of that share,
        shared_by_confidence: plus this much of their other confidence.

    Items whose names were typed, the least confidence of a name:
        exact: Typed exactly.
        one_edit: One edit away.
        long_prefix: Nearly typed whole, if many names begin so; if few do, ``max_unnamed``.
        short_prefix: Hardly typed; also if the query is itself a word of names.
        prefix_place: If the query is such a word and few names begin with it, they come after
            this place.
        tie: The most that other evidence adds to these.
    """

    min_similarity: float = 0.5
    best_exponent: float = 0.85
    min_best: float = 0.01
    crowd_from: int = 3
    crowd_to: int = 10
    crowd_floor: float = 0.1
    max_log_odds: float = 5.0
    min_evidence: float = 0.3
    keyword_evidence: float = 0.5
    missing_evidence: float = 15.0
    fall: float = 30.0
    max_unnamed: float = 0.97
    shared_from: float = 0.6
    shared: float = 0.5
    shared_by_match: float = 0.04
    shared_by_confidence: float = 0.1
    exact: float = 0.98
    one_edit: float = 0.975
    long_prefix: float = 0.85
    short_prefix: float = 0.4
    prefix_place: int = 2
    tie: float = 0.0002


PARAMS = Params()


def likeness(similarity: Values) -> Values:
    """How much a name's similarity to the query counts, 0…1; 0 below ``min_similarity``."""
    like: Values = np.maximum(
        (similarity - PARAMS.min_similarity) / (1.0 - PARAMS.min_similarity), 0.0
    )
    return like


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """The signals that tell whether the first hit of an answer is right.

    Attributes:
        margin: The score of the best less the mean score of the fourth to the tenth, items of one
            name counted once. If the right item is missing, many items fit a little.
        length: The logarithm of the number of words of the query: long ones match nothing closely.
        shared: The share of the query that the best has, 0…1: of its terms, or of its letters if it
            is similar to the name.
    """

    margin: float
    length: float
    shared: float


def scores(found: Candidates) -> Values:
    """The score that orders the candidates: about 0…1, more for a name that was typed."""
    semantic, keyword = found.semantic, found.keyword
    boost = found.query.weights.name_weight * likeness(found.similarity)
    if found.mode is Mode.KEYWORD:
        return keyword + boost
    if found.mode is Mode.SEMANTIC:
        return semantic + boost
    best = max(float(keyword.max(initial=0.0)), PARAMS.min_best)
    alpha = found.query.weights.alpha
    score: Values = alpha * semantic + (1 - alpha) * keyword / best**PARAMS.best_exponent + boost
    return score


def signals(found: Candidates, score: Values) -> Signals:
    """The signals of at least one candidate, by the score of each."""
    best = int(score.argmax())
    by_name: dict[str, float] = {}
    # In ascending order, so that the best of each name is written last.
    for value, row in sorted(zip(score.tolist(), found.rows.tolist(), strict=True)):
        by_name[found.index.entries[row].compact] = value
    crowd = sorted(by_name.values(), reverse=True)[PARAMS.crowd_from : PARAMS.crowd_to]
    crowd += [PARAMS.crowd_floor] * (PARAMS.crowd_to - PARAMS.crowd_from - len(crowd))
    return Signals(
        margin=float(score[best]) - sum(max(one, PARAMS.crowd_floor) for one in crowd) / len(crowd),
        length=math.log(word_count(found.query.text)),
        shared=max(
            found.matches.coverage(int(found.rows[best])),
            float(likeness(found.similarity)[best]),
        ),
    )


def curve_of(found: Candidates) -> Curve:
    """The curve for the arms that answered."""
    if found.mode is Mode.KEYWORD:
        return KEYWORD
    calibration = found.calibration
    return calibration.hybrid if found.mode is Mode.HYBRID else calibration.semantic


def confidences(found: Candidates, score: Values, curve: Curve | None = None) -> Values:
    """The confidence of each candidate, 0…1, by its score and a curve: the model's, or another."""
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
    first -= PARAMS.missing_evidence * max(
        PARAMS.min_evidence - _evidence(found, int(score.argmax())), 0.0
    )
    odds = np.exp(min(first, PARAMS.max_log_odds) - PARAMS.fall * (score.max() - score) ** 2)
    confidence: Values = PARAMS.max_unnamed * odds / (1.0 + odds)
    shared = np.where(
        found.shared >= PARAMS.shared_from,
        PARAMS.shared
        + PARAMS.shared_by_match * found.shared
        + PARAMS.shared_by_confidence * confidence,
        0.0,
    )
    confidence = np.maximum(confidence, shared)
    if found.close.any():
        confidence = np.maximum(confidence, _floor(found, confidence))
    return confidence.astype(np.float32)


def _evidence(found: Candidates, place: int) -> float:
    """The evidence for a candidate by itself; always enough if only the keyword arm answered."""
    if found.mode is Mode.KEYWORD:
        return PARAMS.min_evidence
    like = float(likeness(found.similarity)[place])
    return (
        float(found.semantic[place]) + PARAMS.keyword_evidence * float(found.keyword[place]) + like
    )


def _floor(found: Candidates, confidence: Values) -> Values:
    """The least confidence of each item whose name was typed; other evidence breaks ties."""
    close = found.close
    one_edit, few = PARAMS.one_edit, PARAMS.max_unnamed
    many = PARAMS.short_prefix + (PARAMS.long_prefix - PARAMS.short_prefix) * close
    if found.is_word:
        one_edit, many = PARAMS.short_prefix, np.full_like(close, PARAMS.short_prefix)
        ahead = np.sort(confidence[close < FEW_BEGUN])[-PARAMS.prefix_place :]
        few = PARAMS.short_prefix
        if len(ahead) == PARAMS.prefix_place:
            few = max(few, float(ahead[0]) - 2 * PARAMS.tie)
    floor = np.select(
        [close >= EXACT, close >= ONE_EDIT, close >= FEW_BEGUN, close > 0.0],
        [PARAMS.exact, one_edit, few, many],
        0.0,
    )
    least: Values = np.where(close > 0.0, floor + PARAMS.tie * confidence, 0.0)
    return least
