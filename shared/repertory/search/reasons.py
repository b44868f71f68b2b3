"""Why a hit was found, in words a person and a model can use."""

from collections.abc import Iterable, Sequence

from repertory.catalogue.views import split_at_headings
from repertory.index.keywords.document import WRITTEN, Entry
from repertory.index.keywords.index import Term as QueryTerm
from repertory.index.keywords.names import EXACT, ONE_EDIT
from repertory.index.keywords.tokens import terms, words
from repertory.search.answer import Evidence, Term
from repertory.search.capabilities import intents

MOST_TERMS = 3  # matched words that a reason names
MEANING = 0.3  # a calibrated cosine from which the meaning is part of the reason


def matched_terms(matched: Iterable[tuple[QueryTerm, str]], text: str) -> list[Term]:
    """The words of a query with the words of an item that they matched, as both are written.

    Args:
        matched: The query's terms with the indexed term that each matched.
        text: Where to look the item's own spelling up; the indexed term stands in where it is not.
    """
    written: dict[str, str] = {}
    found = []
    for term, key in matched:
        if term.factor == 1.0:  # it is the word itself
            spelling = term.typed
        else:
            written = written or {stem: word for word, stem in reversed(words(text))}
            spelling = written.get(key, key.removeprefix(WRITTEN))
        found.append(Term(typed=term.typed, matched=spelling))
    return found


def best_section(body: str, terms: Iterable[QueryTerm], vocabulary: Sequence[str]) -> str:
    """The heading of the section of a body that has the most of a query's terms, rarest first."""
    wanted = [
        (tuple(_beginning(vocabulary[number]) for number in term.rows), term.idf) for term in terms
    ]
    best, heading = 0.0, ""
    for section in split_at_headings(body):
        title, text = section.title.lower(), section.text.lower()
        score = sum(
            idf * (2 * any(stem in title for stem in stems) + any(stem in text for stem in stems))
            for stems, idf in wanted
        )
        if section.heading and score > best:
            best, heading = score, section.heading
    return heading


def reason(query: str, entry: Entry, evidence: Evidence, close: float) -> str:
    """Why an entry was found, in one short line."""
    if evidence.capability:
        return f"Capability inference ({evidence.capability})"
    if close >= EXACT:
        return "Exact name match"
    parts = []
    if close >= ONE_EDIT:
        parts.append(f"Fuzzy name match ({query.strip()} → {entry.name})")
    elif close:
        parts.append(f"Name begins with “{query.strip()}”")
    elif evidence.name >= 0.75:
        parts.append(f"Fuzzy name match ({query.strip()} → {entry.name})")
    if evidence.semantic is not None and evidence.semantic >= MEANING and not parts:
        shared = [intent.label for intent in intents(query) if _serves(intent.words, entry)]
        parts.append(f"Semantic similarity ({shared[0]})" if shared else "Semantic similarity")
    if evidence.terms and not close:
        shown = [_correction(term) for term in evidence.terms[:MOST_TERMS]]
        parts.append(f"keywords ({', '.join(shown)})")
    if evidence.section:
        parts.append(f"in “{evidence.section.lstrip('# ')}”")
    text = " + ".join(parts[:2]) + (f", {parts[2]}" if len(parts) > 2 else "")
    return text[:1].upper() + text[1:] or "Weak semantic similarity"


def _serves(words: Iterable[str], entry: Entry) -> bool:
    there = set(terms(f"{entry.name} {entry.description}"))
    return any(set(terms(word)) <= there for word in words)


def _beginning(indexed: str) -> str:
    """What all words of an indexed term begin with: a stem, but for a final y, stemmed to i."""
    return indexed.removeprefix(WRITTEN).removesuffix("i")


def _correction(term: Term) -> str:
    same = terms(term.typed) == terms(term.matched)
    return term.typed if same else f"{term.typed} → {term.matched}"
