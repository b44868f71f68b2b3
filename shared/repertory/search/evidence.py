"""The evidence of words, names and actions for an item, and the log odds from it."""

import math

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from repertory.catalogue import actions
from repertory.index.keywords.background import rarity
from repertory.index.keywords.document import NAME, Field
from repertory.index.keywords.lexicon import VARIANT_FACTOR
from repertory.index.keywords.query_words import plain
from repertory.index.keywords.tokens import term_set, word_count
from repertory.search.candidates import Candidates, Numbers
from repertory.search.similar_names import MIN_SIMILARITY
from repertory.values import Values


class EvidenceWeights(msgspec.Struct, frozen=True, kw_only=True):
    """The weight of each kind of evidence in the log odds.

    ``benchmarks/quality/fit.py`` fits them jointly to the order of labelled queries and to judged
    pairs.

    Attributes:
        share: The share of the query's terms that the item has, by rarity.
        mass: The sum of these terms' rarities, each times its weight in the item.
        named: The share of the query's terms that the name has.
        whole: The name has two words or more, and the query has all of them.
        like: The similarity of the query to the name, above ``MIN_SIMILARITY``.
        action: The query asks for the action of the name.
        mismatch: The query asks for a different action than the name's.
        server: The sum of the rarities of the words shared by the query and the server's name.
        length: The logarithm of the query's word count, because long queries match less closely.
        rarity: The sum of the rarities of all terms of the query.
        bias: A constant.
    """

    share: float
    mass: float
    named: float
    whole: float
    like: float
    action: float
    mismatch: float
    server: float
    length: float
    rarity: float
    bias: float


BESIDE_VECTORS = EvidenceWeights(
    share=1.78,
    mass=0.49,
    named=0.0,
    whole=0.52,
    like=4.21,
    action=0.34,
    mismatch=-0.42,
    server=0.55,
    length=-0.91,
    rarity=0.25,
    bias=-2.85,
)
WORDS_ALONE = EvidenceWeights(
    share=0.83,
    mass=1.37,
    named=1.87,
    whole=0.64,
    like=3.22,
    action=0.4,
    mismatch=-0.4,
    server=1.32,
    length=-1.11,
    rarity=0.18,
    bias=-2.03,
)

MAX_RARITY = 14.0  # the maximum sum of rarities; nearly no query of the fitted sets has more

_ROUNDING = 1e-3  # the tolerance for weights, which are stored as 16-bit floats
_DEFAULTS = Values()


def log_odds_of_words(found: Candidates, by: EvidenceWeights = BESIDE_VECTORS) -> Numbers:
    """The log odds of each candidate from all evidence except the meaning."""
    like = by.like * found.query.weights.name_weight / _DEFAULTS.name_weight
    weights = msgspec.structs.astuple(replace(by, like=like))
    odds: Numbers = evidence_of_words(found) @ np.array(weights, np.float32)
    return odds


def evidence_of_words(found: Candidates) -> Numbers:
    """The evidence of each candidate: shape ``(candidates, fields of EvidenceWeights)``."""
    text, asked_terms, weights = found.query.text, found.matches.terms, found.weights
    shares = found.matches.shares
    rarities = np.array([term.rarity for term in asked_terms], np.float32)
    typed = frozenset(term.stem for term in asked_terms)
    asked = actions.of_request(plain(text))
    index, rows = found.index, found.rows
    doing = index.numbers(
        "actions", rows, lambda does: actions.agreement(asked, frozenset(does.split()))
    )
    servers = index.numbers(
        "server", rows, lambda server: sum(map(rarity, term_set(server) & typed))
    )
    evidence = np.empty((len(rows), len(EvidenceWeights.__struct_fields__)), np.float32)
    columns = {
        "share": shares @ (weights > 0),
        "mass": np.minimum(rarities @ weights, MAX_RARITY),
        "named": shares @ reaches(weights, NAME.least),
        "whole": _has_whole_name(found, typed),
        "like": likeness(found.similarity),
        "action": doing > 0,
        "mismatch": doing < 0,
        "server": servers,
        "length": math.log(word_count(plain(text))),
        "rarity": min(float(rarities.sum()), MAX_RARITY),
        "bias": 1.0,
    }
    for place, name in enumerate(EvidenceWeights.__struct_fields__):
        evidence[:, place] = columns[name]
    return evidence


def _has_whole_name(found: Candidates, typed: frozenset[str]) -> NDArray[np.bool_]:
    """Which candidates have a name of two terms or more that were all typed."""
    in_name = has_or_corrected(found, NAME)
    has = np.zeros(len(found.rows), np.bool_)
    for place in np.flatnonzero(in_name.sum(axis=0) > 1).tolist():
        name = term_set(found.entry(place).name)
        has[place] = len(name) > 1 and name <= typed
    return has


def likeness(similarity: Numbers) -> Numbers:
    """How much a name's similarity to the query counts, 0…1; 0 below ``MIN_SIMILARITY``."""
    like: Numbers = np.maximum((similarity - MIN_SIMILARITY) / (1.0 - MIN_SIMILARITY), 0.0)
    return like


def reaches(weights: Numbers, least: float) -> NDArray[np.bool_]:
    """Where weights are at least that of a field: the term is in it, or a better one, as typed."""
    has: NDArray[np.bool_] = weights >= least - _ROUNDING
    return has


def has_or_corrected(found: Candidates, field: Field) -> NDArray[np.bool_]:
    """Where a term is in a field of this kind or better, corrected if no item has it as typed.

    Shape ``(terms, candidates)``.
    """
    least = [field.least * (1.0 if one.exact else VARIANT_FACTOR) for one in found.matches.terms]
    has: NDArray[np.bool_] = found.weights >= np.array(least, np.float32)[:, None] - _ROUNDING
    return has
