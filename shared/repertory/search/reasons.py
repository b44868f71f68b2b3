"""Why a hit was found, in words that a person and a model can use."""

from collections.abc import Iterable, Sequence

from repertory.catalogue.names import compact_name
from repertory.catalogue.views import split_at_headings
from repertory.index.keywords.background import is_english
from repertory.index.keywords.document import Entry
from repertory.index.keywords.lexicon import Term as QueryTerm
from repertory.index.keywords.matches import Matches
from repertory.index.keywords.names import EXACT, ONE_EDIT
from repertory.index.keywords.places import Places
from repertory.index.keywords.tokens import terms
from repertory.search.answer import Evidence, Term
from repertory.search.capabilities import jobs
from repertory.search.similar_names import OTHER, closest_name

# In the order of a reason.
FIELDS = ("name", "description", "server", "parameters", "headings", "body")
MAX_TERMS = 3  # matched words that a reason names
MIN_SEMANTIC = 0.5  # of the evidence of the semantic arm, from which a reason names it


def best_section(body: str, terms: Iterable[QueryTerm], matches: Matches) -> str:
    """The heading of the section of a body that has the most of some terms, by their rarity."""
    wanted = [(matches.beginnings(term), term.rarity) for term in terms]
    best, heading = 0.0, ""
    for section in split_at_headings(body):
        title, text = section.title.lower(), section.text.lower()
        score = sum(
            rarity
            * (2 * any(stem in title for stem in stems) + any(stem in text for stem in stems))
            for stems, rarity in wanted
        )
        if section.heading and score > best:
            best, heading = score, section.heading
    return heading


def reason(
    query: str, entry: Entry, evidence: Evidence, section: str, places: Places, close: float
) -> str:
    """Why an entry was found, in one short line.

    ``section`` is the heading of the section that matched; empty for the item itself. ``close``
    tells whether the name was typed; see ``NameIndex.close``.
    """
    name = _typed_name(query, entry) if close >= EXACT else closest_name(query, entry)
    what = "name" if name == entry.name else "alias"
    if close >= EXACT:
        return "Exact name match" if what == "name" else f"Exact alias match ({name})"
    parts = []
    if close >= ONE_EDIT:
        parts.append(f"Fuzzy {what} match ({query.strip()} → {name})")
    elif close >= OTHER:
        parts.append(f"Similar {what} ({name})")
    elif close:
        parts.append(f"{what.title()} begins with “{query.strip()}”")
    elif evidence.name >= 0.75:
        parts.append(f"Fuzzy {what} match ({query.strip()} → {name})")
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
    if matched and not (close and close != OTHER):
        parts.append(_keywords(matched[:MAX_TERMS], is_placed=bool(section)))
    text = " + ".join(parts)
    if text and section:
        text += f", in “{section.lstrip('# ')}”"
    weak = "Weak match" if evidence.semantic is None else "Weak semantic similarity"
    return text[:1].upper() + text[1:] or weak


def _typed_name(query: str, entry: Entry) -> str:
    """The name or alias of an entry that the query is, or has among its words."""
    if not entry.aliases:
        return entry.name
    names = {compact_name(name): name for name in reversed(entry.names)}
    for typed in (query, *query.split()):
        if found := names.get(compact_name(typed)):
            return found
    return closest_name(query, entry)


def _keywords(terms: Sequence[Term], *, is_placed: bool) -> str:
    """The words that matched, with their fields unless the section is named."""
    where = ""
    if not is_placed and all(term.field for term in terms):
        *others, last = sorted({term.field for term in terms}, key=FIELDS.index)
        where = f" in {', '.join(others)} and {last}" if others else f" in {last}"
    return f"keywords{where} ({', '.join(map(_correction, terms))})"


def _correction(term: Term) -> str:
    typed, matched = compact_name(term.typed), compact_name(term.matched)
    # A word that is none may have the stem of another word: "severence" and "several".
    is_form = typed.startswith(matched) or matched.startswith(typed) or is_english(typed)
    same = typed == matched or (is_form and terms(typed) == terms(matched))
    return term.typed if same else f"{term.typed} → {term.matched}"
