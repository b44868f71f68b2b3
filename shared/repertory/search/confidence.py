"""From evidence to one number: the score that orders hits, and the confidence shown for it.

Both are absolute: they compare an item with the query, never with the rest of the list, but for
one thing that belongs to the query, how well anything matches it at all. A confidence rises with
its score, so that the confidences of an answer fall down its list.
"""

import numpy as np
from numpy.typing import NDArray

from repertory.index.keywords.names import EXACT, ONE_EDIT
from repertory.search.answer import Mode
from repertory.search.candidates import Candidates

Values = NDArray[np.float32]

NAME = 0.8  # the boost of a name that was typed as it is
NAME_FROM = 0.5  # names less alike than this are not alike
# Long queries match no item perfectly. Dividing by a part of the best match that there is keeps
# their words from counting for nothing beside the semantic arm.
BEST = 0.85

# Logistic curves. The slopes follow a fit on the public labelled sets, the biases are set so that a
# threshold of 0.35 keeps nearly all right answers there and drops nonsense.
SLOPE = 4.0
BEST_SEMANTIC = 2.0
BIAS = -2.9
KEYWORD_SLOPE, KEYWORD_BIAS = 5.0, -1.5
SEMANTIC_SLOPE, SEMANTIC_BIAS = 8.0, -3.6

MOST = 0.97  # what no evidence exceeds but a name typed exactly
SURE = 0.98  # the least confidence of such a name
CLOSE = 0.85  # … of a name with one edit
BEGUN = 0.4  # … of a name that was only begun; more as more of it was typed


def name_boost(similarity: Values) -> Values:
    """The boost for a name by its similarity to the query, 0…``NAME``, 0 below ``NAME_FROM``."""
    boost: Values = NAME * np.maximum((similarity - NAME_FROM) / (1.0 - NAME_FROM), 0.0)
    return boost


def confidences(found: Candidates) -> Values:
    """The confidence of each candidate, 0…1."""
    semantic, keyword = found.semantic, found.keyword
    boost = name_boost(found.similarity)
    if found.mode is Mode.KEYWORD:
        logit = KEYWORD_SLOPE * (keyword + boost) + KEYWORD_BIAS
    elif found.mode is Mode.SEMANTIC:
        logit = SEMANTIC_SLOPE * (semantic + boost) + SEMANTIC_BIAS
    else:
        best = max(float(keyword.max(initial=0.0)), 0.01)
        alpha = found.query.alpha
        score = alpha * semantic + (1 - alpha) * keyword / best**BEST + boost
        logit = SLOPE * score + BEST_SEMANTIC * float(semantic.max(initial=0.0)) + BIAS
    confidence: Values = MOST / (1.0 + np.exp(-logit))
    if found.close.any():
        confidence = np.maximum(confidence, _floor(found.close, confidence))
    return confidence.astype(np.float32)


def _floor(close: Values, curve: Values) -> Values:
    """The least confidence that a typed name deserves; the other evidence breaks ties."""
    begun = BEGUN + (CLOSE - BEGUN) * close
    floor = np.select([close >= EXACT, close >= ONE_EDIT, close > 0.0], [SURE, CLOSE, begun], 0.0)
    least: Values = np.where(close > 0.0, floor + 0.01 * curve, 0.0)
    return least
