"""Turns the evidence for an item into its confidence.

The confidence says how likely the person who asked is glad to see the item. It depends only on the
query and this item: on how close their meanings are, on the words that they share, and on the name.
Word rarity comes from a fixed table. So neither the limit nor other items change the confidence,
except that a query is compared with at most ``MAX_BY_WORDS`` texts that have all its words.

The log odds are a weighted sum of the evidence and give a probability. The confidence is its square
root, raised if the words alone are decisive, such as a typed name or a query of one word.
"""

import re

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from repertory.catalogue import actions
from repertory.catalogue.names import compact_name, has_separators, signs, split_name
from repertory.index.keywords.background import is_english, is_known, is_word
from repertory.index.keywords.document import BODY, DESCRIPTION, HEADINGS, NAME, WRITTEN
from repertory.index.keywords.lexicon import VARIANT_FACTOR, QueryTerm
from repertory.index.keywords.names import ALSO, EXACT, ONE_EDIT, ONE_MORE, OTHER_WORD
from repertory.index.keywords.query_words import bare, has_few_words, identifier, is_distinct, plain
from repertory.index.keywords.tokens import STOP_WORDS, term_of
from repertory.search.answer import Mode
from repertory.search.candidates import Candidates, Numbers
from repertory.search.evidence import WORDS_ALONE, has_or_corrected, log_odds_of_words, reaches
from repertory.search.languages import is_in_another_language
from repertory.search.opposites import opposed
from repertory.search.quotations import Title, quotation
from repertory.values import Values

MAX_UNNAMED = 0.97  # the maximum confidence without a typed name

# For a query of one word: the range of an item's confidence, by the best field that has the word.
# "Rest" means the names of server and parameters, and headings.
IN_NAME, IN_DESCRIPTION, IN_REST, IN_BODY = (0.8, 0.97), (0.6, 0.79), (0.42, 0.59), (0.36, 0.41)
# A word missing from the background table is also corrected, even if some items have it. Items with
# the word as typed come before items with a correction, unless the correction is in a name.
UNUSUAL_IN_BODY = (0.411, 0.419)
CORRECTED_IN_NAME, CORRECTED, CORRECTED_IN_REST = (0.45, 0.59), (0.37, 0.41), (0.36, 0.4)
WITHOUT_THE_WORD = (0.0, 0.41)
# The share of a range that is added for items with the word as typed: `modified`, not `modify`.
AS_TYPED = 0.3

# The minimum confidence of an item that has all words of a query, or a meaningful share of them by
# rarity, outside of its body; or all words in any field, if they are rare enough. ``ADDED`` is the
# weight of the item's other evidence.
ALL_IN_NAME, ALL_IN_DESCRIPTION, ALL_ANYWHERE, MEANINGFUL = 0.6, 0.37, 0.36, 0.35
CORRECTED_IN_DESCRIPTION = 0.36
MEANINGFUL_SHARE = 0.55
MIN_ANYWHERE = 1.2  # the minimum sum of rarities, because most long texts have some common words
# The minimum rarity of words unknown in English, and their minimum share of a query, for these
# words alone to be decisive: "SSCC" in "SSCC label".
UNUSUAL, MOST = 0.8, 0.66
ADDED = 0.05

# For a query that is one identifier of several parts, such as UV_INDEX_URL: the range of the items
# that contain it, and the maximum of the others. Typed names come first.
IDENTIFIER, ITS_PARTS = (0.94, MAX_UNNAMED), 0.93
# The range for shorter ones, such as get_logger, which texts also mention by the way.
SHORT_IDENTIFIER = IN_DESCRIPTION

# The range of items that contain a query word for word, and of those with a section of this title.
# Others may be as good.
QUOTED, TITLED = (0.92, MAX_UNNAMED), IN_DESCRIPTION

# The minimum confidence of an item whose name was typed.
TYPED = 0.98
TYPED_ALSO = 0.975  # ``create_issue`` for ``linear_create_issue``, or an alias
MISSPELT = 0.972
# The same if only the beginning of the name was typed. An unfinished identifier is nearly the name;
# an unfinished word is better evidence than a whole word, which may mean something else. The shares
# are multiplied by the part of the name that was typed, and added.
BEGUN_IDENTIFIER, BEGUN, BEGUN_WORD = 0.955, 0.9, 0.7
IDENTIFIER_SHARE, BEGUN_SHARE = 0.015, 0.05
MIN_MISSPELT = 4  # characters; one edit of a shorter name gives another word: `aws`, `awk`
TIE = 0.0004  # the weight of an item's own confidence on top of a minimum, to break ties
OPPOSITE = CORRECTED_IN_NAME[1]  # the maximum confidence of an opposite of the request

Confidences = NDArray[np.float64]

_LETTERS = re.compile("[a-z][&/][a-z]")  # one letter may be a stop word: m&a, a/b
_PUNCTUATION = "\"'.,;:?!()"  # around a word
_DEFAULTS = Values()


def probability(confidence: float) -> float:
    """The probability of a confidence, 0…1: its square."""
    return confidence**2


def confidences(found: Candidates) -> Confidences:
    """The confidence of each candidate, 0…1.

    If ``shared`` is set, it is the higher one of all terms and of the shared terms alone. The terms
    that two languages share are only a part of the query, even if it is a single one.
    """
    whole = _by_terms(found)
    if found.shared is None:
        return whole
    part = replace(found, matches=found.shared, weights=found.shared.weights(found.rows))
    is_all = not is_in_another_language(found.query.text)
    return np.maximum(whole, _by_terms(part, is_all=is_all))


def _by_terms(found: Candidates, *, is_all: bool = True) -> Confidences:
    """The confidence of each candidate for the terms of ``found.matches``.

    ``is_all`` says whether these are all words of the query that have a meaning.
    """
    if found.mode is Mode.KEYWORD:
        odds = log_odds_of_words(found, WORDS_ALONE)
    else:
        alpha, usual = found.query.weights.alpha, _DEFAULTS.alpha
        odds = alpha / usual * found.semantic
        odds = odds + (1 - alpha) / (1 - usual) * log_odds_of_words(found)
    confidence = MAX_UNNAMED * np.sqrt(1 / (1 + np.exp(-odds.astype(np.float64))))
    if is_all and len(found.matches.terms) == 1 and has_few_words(found.query.text):
        confidence = _of_one_word(found, found.matches.terms[0], found.weights[0], confidence)
    elif found.matches.terms:
        confidence = _of_words(found, confidence)
    if found.matches.terms and identifier(found.query.text):
        confidence = _of_identifier(found, confidence)
    if found.close.any():
        confidence = np.maximum(confidence, _of_typed_names(found, confidence))
    if found.quoted and (quoted := quotation(found.query.text)):
        bounds = TITLED if isinstance(quoted, Title) else QUOTED
        is_quoted = np.isin(found.rows, [*found.quoted])
        confidence = np.where(is_quoted, within(bounds, confidence), confidence)
    return _without_opposites(found, confidence)


def within(bounds: tuple[float, float], confidence: Confidences) -> Confidences:
    """The confidences, mapped to a range; those above it stay."""
    low, high = bounds
    return np.maximum(confidence, low + (high - low) * confidence / MAX_UNNAMED)


def _without_opposites(found: Candidates, confidence: Confidences) -> Confidences:
    """The confidences, with those of opposites limited to ``OPPOSITE``."""
    high = np.flatnonzero(confidence > OPPOSITE)
    entries = found.index.entries(found.rows[high].tolist())
    corrected = {
        term.typed: [one.removeprefix(WRITTEN) for one in term.variants]
        for term in found.matches.terms
        if not term.exact
    }
    confidence[high[opposed(found.query.text, entries, corrected)]] = OPPOSITE
    return confidence


def _of_words(found: Candidates, confidence: Confidences) -> Confidences:
    """The confidences for a query of several terms, which may be parts of one word."""
    of_parts = np.maximum(confidence, _of_all_words(found, confidence))
    typed, whole = found.matches.terms, found.matches.whole
    if whole in typed:
        of_parts = np.minimum(of_parts, CORRECTED_IN_NAME[1])
    if not whole.exact:
        return of_parts
    weight = found.matches.only([whole]).weights(found.rows)[0]
    has_whole = reaches(weight, BODY.least)
    if not has_whole.any():
        return of_parts
    of_whole = _of_one_word(found, whole, weight, confidence)
    return np.where(has_whole, np.maximum(of_parts, of_whole), of_parts)


def _of_identifier(found: Candidates, confidence: Confidences) -> Confidences:
    """The confidences for a query that is one identifier: by whether an item contains it.

    For a distinct one, items that have all its parts in their name count as well:
    ``create_api_key`` for ``API_KEY``.
    """
    whole = found.matches.only([found.matches.whole]).weights(found.rows)[0]
    has_it = reaches(whole, BODY.least)
    if not is_distinct(found.query.text):
        return np.where(has_it, within(SHORT_IDENTIFIER, confidence), confidence)
    if found.matches is not found.shared:  # which are only some of its parts
        has_it |= np.all(reaches(found.weights, NAME.least), axis=0)
    return np.where(has_it, within(IDENTIFIER, confidence), np.minimum(confidence, ITS_PARTS))


def _of_one_word(
    found: Candidates, term: QueryTerm, weight: Numbers, confidence: Confidences
) -> Confidences:
    """The confidences for a query of one word: by the best field that has it, then other evidence.

    ``weight`` is the word's weight in each candidate.
    """
    in_body = IN_BODY if is_known(term.stem) else UNUSUAL_IN_BODY
    # For each field, best first: its range, and a lower range for matches that are not meant. These
    # are other words of the same stem, items with another action (set_volume for "get volume"), and
    # words without the signs of the query, which are not part of terms (C for "C#").
    fields = (
        (NAME.least, IN_NAME, IN_REST),
        (DESCRIPTION.least, IN_DESCRIPTION, IN_BODY),
        (HEADINGS.least, IN_REST, IN_BODY),
        (BODY.least, in_body, in_body),
        (VARIANT_FACTOR * NAME.least, CORRECTED_IN_NAME, CORRECTED_IN_NAME),
        (VARIANT_FACTOR * DESCRIPTION.least, CORRECTED, CORRECTED),
        (VARIANT_FACTOR * HEADINGS.least, CORRECTED_IN_REST, CORRECTED_IN_REST),
        (-np.inf, WITHOUT_THE_WORD, WITHOUT_THE_WORD),
    )
    leasts, meant, others = zip(*fields, strict=True)
    best = np.argmax([reaches(weight, least) for least in leasts], axis=0)
    is_meant = found.matches.holds_form(term, found.rows) & _has_signs(found)
    if len(found.matches.terms) == 1:  # words of an identifier are not verbs: `MediaQuery`
        is_meant &= ~_only_changes(found)
    bounds = np.where(is_meant[:, None], np.array(meant)[best], np.array(others)[best])
    bounds[(best == 0) & is_meant & _deletes_unasked(found)] = IN_DESCRIPTION
    low, high = bounds.T
    share = (1 - AS_TYPED) * confidence / MAX_UNNAMED
    share[_is_as_typed(found, term, weight)] += AS_TYPED
    inside = low + (high - low) * share
    bounded: Confidences = np.where(low > 0, inside, np.minimum(confidence, high))
    return bounded


def _is_as_typed(found: Candidates, term: QueryTerm, weight: Numbers) -> NDArray[np.bool_]:
    """Where the best field that has a word has it as typed; also true if it was corrected."""
    written = found.matches.weights_as_typed(term, found.rows)
    leasts = [field.least for field in (NAME, DESCRIPTION, HEADINGS, BODY)]
    as_typed: NDArray[np.bool_] = np.select(
        [reaches(weight, least) for least in leasts],
        [reaches(written, least) for least in leasts],
        default=True,
    )
    return as_typed


def _has_signs(found: Candidates) -> NDArray[np.bool_]:
    """Which candidates have all words with signs, such as ``C#``, in a name or the description.

    If the query has no words with signs, all candidates do.
    """
    words = (word.strip(_PUNCTUATION) for word in found.query.text.lower().split())
    signed = [word for word in words if signs(word) or _LETTERS.fullmatch(word)]
    if not signed:  # the usual case
        return np.ones(len(found.rows), np.bool_)
    entries = found.index.entries(found.rows.tolist())
    texts = (" ".join((*entry.names, entry.description)).lower() for entry in entries)
    return np.array([all(word in text for word in signed) for text in texts], np.bool_)


def _only_changes(found: Candidates) -> NDArray[np.bool_]:
    """Which candidates only change things, if the query asks only to read."""
    if not actions.only_reads(actions.of_request(plain(found.query.text))):
        return np.zeros(len(found.rows), np.bool_)
    changing: NDArray[np.bool_] = found.index.numbers(
        "actions", found.rows, lambda does: actions.only_changes(frozenset(does.split()))
    ).astype(np.bool_)
    return changing


def _deletes_unasked(found: Candidates) -> NDArray[np.bool_]:
    """Which candidates only delete things, if the query asks for no action: `database`."""
    if actions.of_request(plain(found.query.text)):
        return np.zeros(len(found.rows), np.bool_)
    deleting: NDArray[np.bool_] = found.index.numbers(
        "actions",
        found.rows,
        lambda does: actions.agreement(frozenset(), frozenset(does.split())) < 0,
    ).astype(np.bool_)
    return deleting


def _of_all_words(found: Candidates, confidence: Confidences) -> Confidences:
    """The minimum confidences for a query of several words."""
    in_name, in_description, anywhere = (
        reaches(found.weights, field.least) for field in (NAME, DESCRIPTION, BODY)
    )
    covered = found.matches.shares @ has_or_corrected(found, HEADINGS)
    least = np.where(covered >= MEANINGFUL_SHARE, MEANINGFUL, -1.0)
    rarities = np.array([term.rarity for term in found.matches.terms])
    unusual = np.array(
        [term.rarity >= UNUSUAL and not is_english(term.typed) for term in found.matches.terms]
    )
    if rarities[unusual].sum() >= MOST * rarities.sum():
        least[anywhere[unusual].all(axis=0)] = MEANINGFUL
    if rarities.sum() >= MIN_ANYWHERE:
        least[anywhere.all(axis=0)] = ALL_ANYWHERE
    least[has_or_corrected(found, DESCRIPTION).all(axis=0)] = CORRECTED_IN_DESCRIPTION
    least[in_description.all(axis=0)] = ALL_IN_DESCRIPTION
    least[has_or_corrected(found, NAME).all(axis=0)] = CORRECTED_IN_NAME[0]
    least[in_name.all(axis=0)] = ALL_IN_NAME
    least[_only_changes(found) & (least > MEANINGFUL)] = MEANINGFUL
    return least + ADDED * confidence


def _of_typed_names(found: Candidates, confidence: Confidences) -> Confidences:
    """The minimum confidences of items whose names were typed."""
    close = found.close
    begun, share = _least_begun(bare(found.query.text))
    is_near = (close >= OTHER_WORD) & (close < ONE_MORE)
    least: Confidences = np.select(
        [close >= EXACT, close >= ALSO, is_typed(found), is_near, close > 0],
        [TYPED, TYPED_ALSO, MISSPELT, CORRECTED_IN_NAME[0], begun + share * close],
        -1.0,
    )
    return least + TIE * confidence


def _least_begun(text: str) -> tuple[float, float]:
    """The minimum confidence if a name begins with the query, and the weight of the typed share."""
    if _is_short(text):
        return BEGUN_WORD, BEGUN_SHARE
    if len(text.split()) == 1 and has_separators(text):
        return BEGUN_IDENTIFIER, IDENTIFIER_SHARE
    return (BEGUN_WORD if all(_are_known(text)) else BEGUN), BEGUN_SHARE


def is_typed(found: Candidates) -> NDArray[np.bool_]:
    """Which candidates' names were typed; one edit is allowed unless the query is another word."""
    if not found.close.any():  # the usual case
        return np.zeros(len(found.rows), np.bool_)
    text = bare(found.query.text)
    words = split_name(plain(text)).split()
    is_other_word = _is_short(text) or (len(words) == 1 and is_word(words[0], term_of(words[0])))
    typed: NDArray[np.bool_] = found.close >= (ALSO if is_other_word else ONE_EDIT)
    return typed


def _is_short(text: str) -> bool:
    return len(compact_name(text)) < MIN_MISSPELT


def _are_known(text: str) -> list[bool]:
    """Whether each word of a query is a known word; stop words are left out."""
    words = split_name(plain(text)).split()
    return [is_known(term_of(word)) for word in words if word not in STOP_WORDS]
