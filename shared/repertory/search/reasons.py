"""Why a hit was found, in words for people and models."""

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise, product

from msgspec.structs import replace

from repertory.catalogue.names import compact_name, folded, split_name
from repertory.catalogue.views import Section, split_at_headings
from repertory.index.keywords.background import is_english
from repertory.index.keywords.document import BODY, WRITTEN, Entry
from repertory.index.keywords.inflections import are_forms
from repertory.index.keywords.lexicon import QueryTerm
from repertory.index.keywords.names import EXACT, ONE_EDIT, OTHER_WORD
from repertory.index.keywords.places import Places
from repertory.index.keywords.query_words import AROUND, plain
from repertory.index.keywords.tokens import (
    STOP_WORDS,
    is_unspaced,
    runs,
    spellings,
    term_of,
    terms,
)
from repertory.search.answer import Evidence, Term
from repertory.search.capabilities import jobs
from repertory.search.similar_names import closest_name, may_be_one
from repertory.text import one_line

# In the order in which a reason names them.
FIELDS = ("name", "description", "server", "parameters", "headings", "body")
MAX_READ = 10_000  # characters of a section that are searched for words; takes a millisecond
MAX_TERMS = 3  # matched words that a reason names
NO_SECTION = Section(heading="", text="")
MIN_LIKENESS = 0.75  # the minimum similarity of a name for the reason to mention it
MIN_SEMANTIC = 0.5  # the minimum semantic evidence for the reason to mention it
_AFTER = f"{AROUND}.,:;!?"  # characters at the end of a query that a reason does not quote


def best_section(body: str, terms: Iterable[QueryTerm]) -> Section:
    """The section of a body that has most of the terms, by rarity; titles count twice."""
    wanted = [(term.beginnings, term.rarity) for term in terms]
    best, found = 0.0, NO_SECTION
    for section in split_at_headings(body):
        title, text = section.title.lower(), section.text.lower()
        score = sum(
            rarity
            * (2 * any(stem in title for stem in stems) + any(stem in text for stem in stems))
            for stems, rarity in wanted
        )
        if section.heading and score > best:
            best, found = score, section
    return found


def terms_of(section: Section, matched: Iterable[QueryTerm]) -> list[Term]:
    """The matched terms in a section's first ``MAX_READ`` characters, spelt as there."""
    spelt: dict[str, str] = {}
    for written, term in spellings(f"{section.title} {section.text[:MAX_READ]}"):
        spelt.setdefault(term, written)
        spelt.setdefault(WRITTEN + written, written)
    keys = ((one.typed, (WRITTEN + one.typed, *one.indexed)) for one in matched)
    found = ((typed, [spelt[key] for key in mine if key in spelt]) for typed, mine in keys)
    return [Term(typed=typed, matched=held[0], field=BODY.name) for typed, held in found if held]


def reason(
    query: str,
    entry: Entry,
    evidence: Evidence,
    places: Places,
    close: float,
    section: str = "",
    within: Sequence[Term] = (),
) -> str:
    """Why an entry was found, in one short line.

    ``close`` is how closely the query names the entry, 0…1; see ``NameIndex.close``. ``section``
    is the heading of the section that matched, empty for the item itself. ``within`` are the
    section's terms.
    """
    name = _typed_name(query, entry) if close >= EXACT else closest_name(query, entry)
    what = "name" if name == entry.name else "alias"
    if close >= EXACT:
        return "Exact name match" if what == "name" else f"Exact alias match ({name})"
    parts = [*filter(None, [_name_match(query, name, what, evidence, close)])]
    # If the name is part of the reason, its words are left out.
    matched = [term for term in evidence.terms if not parts or term.field != "name"]
    if evidence.semantic is not None and evidence.semantic >= MIN_SEMANTIC and not parts:
        served = (
            job.label
            for job in jobs(query)
            if job.is_asked_by([stem for stem in job.words if places.has_all([stem])])
        )
        label = next(served, "")
        parts.append(f"Semantic similarity ({label})" if label else "Semantic similarity")
        if section and not within:  # the words are in other parts of the item
            parts[-1] += _place(section)
    joined = _unspaced_words(query, within or matched)
    matched = _whole_words(query, _as_typed(query, joined))
    if matched and not (close and close != OTHER_WORD):
        parts.append(_keywords(matched[:MAX_TERMS], is_placed=bool(within)))
    text = " + ".join(parts) + (_place(section) if within else "")
    weak = "Weak match" if evidence.semantic is None else "Weak semantic similarity"
    return text[:1].upper() + text[1:] or weak


def quoted_in(section: str) -> str:
    """The reason for an item that contains the query word for word, given the section's heading."""
    return "Exact text match" + (_place(section) if section else "")


def _place(section: str) -> str:
    """The end of a reason that names a section, given its heading."""
    title = section.lstrip("# ").replace("**", "")
    return f", in “{title}”"


def _name_match(query: str, name: str, what: str, evidence: Evidence, close: float) -> str:
    """How a name or an alias resembles the query without being equal; empty if it does not."""
    typed = one_line(query).strip(AROUND).rstrip(_AFTER)
    others = _other_words(query, name)
    if close >= ONE_EDIT:
        match = f"Fuzzy {what}" if others else what.title()
        return f"{match} match ({typed} → {name})"
    if close >= OTHER_WORD:
        return f"Similar {what} ({name})"
    if close:
        return f"{what.title()} begins with “{typed}”"
    if evidence.name >= MIN_LIKENESS and any(may_be_one(*pair) for pair in others):
        return f"Fuzzy {what} match ({typed} → {name})"
    return ""


def _typed_name(query: str, entry: Entry) -> str:
    """The name or alias of an entry that equals the query or one of its words."""
    if not entry.aliases:
        return entry.name
    names = {compact_name(name): name for name in reversed(entry.names)}
    for typed in (query, *query.split()):
        if found := names.get(compact_name(typed)):
            return found
    return closest_name(query, entry)


def _unspaced_words(query: str, terms: Sequence[Term]) -> Sequence[Term]:
    """The terms, with character pairs that overlap in the query joined: 端末を.

    Pairs that are left, mostly parts of words, come last.
    """
    if query.isascii():
        return terms
    text, found = folded(query.lower()), list(terms[:1])
    for last, term in pairwise(terms):
        joined = found[-1].typed + term.typed[1:]
        overlaps = last.typed[-1:] == term.typed[:1] and last.field == term.field
        if overlaps and is_unspaced(joined) and joined in text:
            found[-1] = Term(typed=joined, matched=joined, field=term.field)
        else:
            found.append(term)
    return sorted(found, key=lambda term: len(term.typed) == 2 and is_unspaced(term.typed))


def _as_typed(query: str, terms: Sequence[Term]) -> Sequence[Term]:
    """The terms with the accents of the query."""
    if query.isascii():
        return terms
    words = (*split_name(query).split(), *runs(query.lower()))
    spelt = {folded(word): word for word in words}
    return [replace(term, typed=spelt.get(term.typed, term.typed)) for term in terms]


def _whole_words(query: str, terms: Sequence[Term]) -> list[Term]:
    """The terms without parts of words: ``soc2`` alone, not also ``soc``.

    Neighbours that an item writes as one word are joined: ``postmortem``. A part of a typed word
    becomes the word if the item has another form of it: ``shortcode``, for "shortcodes".
    """
    found: list[Term] = []
    typed = {*runs(query.lower())}
    stems = {term_of(run): run for run in typed}
    for spelling, group in groupby(terms, lambda term: compact_name(term.matched)):
        parts = [*group]
        is_one = term_of(compact_name("".join(one.typed for one in parts))) == term_of(spelling)
        whole = Term(typed=parts[0].matched, matched=parts[0].matched, field=parts[0].field)
        is_whole = (is_one and len(parts) > 1) or spelling in typed
        run = stems.get(term_of(spelling), "")
        if run and parts[0].typed != run and parts[0].typed in spelling:
            whole, is_whole = replace(whole, typed=run), True
        found += [whole] if is_whole else parts
    wholes = {compact_name(term.typed) for term in found if term.typed in typed}
    return [
        term
        for term in found
        if term.typed in typed or not any(term.typed in one for one in wholes)
    ]


def _keywords(terms: Sequence[Term], *, is_placed: bool) -> str:
    """The words that matched, with their fields unless the section is named."""
    where = ""
    if not is_placed and all(term.field for term in terms):
        *others, last = sorted({term.field for term in terms}, key=FIELDS.index)
        where = f" in {', '.join(others)} and {last}" if others else f" in {last}"
    words = map(_correction, terms)
    return f"keywords{where} ({', '.join(words)})"


def _other_words(query: str, name: str) -> list[tuple[str, str]]:
    """All pairs of a word that only the query has and a word that only the name has."""
    typed, named = ({*split_name(text).split()} - STOP_WORDS for text in (plain(query), name))
    return [*product(typed - named, named - typed)]


def _correction(term: Term) -> str:
    """A matched word as the item has it, after the typed one if that was corrected."""
    typed, matched = compact_name(term.typed), compact_name(term.matched)
    # A typo may have the stem of another word: "provenence" and "proven".
    is_form = are_forms(typed, matched) or is_english(typed)
    if typed == matched:
        return term.typed
    if is_form and terms(typed) == terms(matched):
        return term.matched
    return f"{term.typed} → {term.matched}"
