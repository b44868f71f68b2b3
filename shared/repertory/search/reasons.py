"""Why a hit was found, in words a person and a model can use."""

from collections.abc import Iterable, Mapping, Sequence

from rapidfuzz import fuzz

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.names import split_name
from repertory.catalogue.views import split_at_headings
from repertory.index.keywords.document import BODY, SHOWN_DESCRIPTION, WRITTEN, Entry, fields
from repertory.index.keywords.index import Term as QueryTerm
from repertory.index.keywords.names import EXACT, ONE_EDIT
from repertory.index.keywords.tokens import terms, words
from repertory.search.answer import Evidence, Term
from repertory.search.capabilities import Intent, asking, intents

FIELDS = ("name", "description", "server", "parameters", "body")  # as they are told
MOST_TERMS = 3  # matched words that a reason names
MEANING = 0.3  # a calibrated cosine from which the meaning is part of the reason


# Where each indexed term of an item stands, and how it is written there.
Places = Mapping[str, tuple[str, str]]


def texts(entry: Entry, item: Item | None) -> list[tuple[str, str]]:
    """The texts of an item, each with the name of its field, the most telling first.

    Args:
        entry: What the keyword index knows of the item.
        item: The whole of it, which knows more; None when it cannot be had.
    """
    if item:
        return [(field.name, text) for field, text in fields(item)]
    return [
        ("name", " ".join(entry.names)),
        ("description", f"{entry.description} {' '.join(entry.tags)}"),
        ("server", entry.server),
    ]


def places(entry: Entry, item: Item | None) -> Places:
    """Where the terms of an item stand, those of its body left out; see ``texts``."""
    found: dict[str, tuple[str, str]] = {}
    for field, text in texts(entry, item):
        for written, term in words(text) if field != BODY.name else ():
            found.setdefault(term, (field, written))
            if written != term:
                found.setdefault(WRITTEN + written, (field, written))
    return found


def elsewhere(entry: Entry, item: Item | None) -> str:
    """The field of a term that an item has in none of its ``places``; empty if it may be any."""
    if item is None and len(entry.description) >= SHOWN_DESCRIPTION:
        return ""  # it was cut off
    return "parameters" if entry.kind is Kind.TOOL else "body"


def matched_terms(
    matched: Iterable[tuple[QueryTerm, str]], there: Places, other: str
) -> list[Term]:
    """The words of a query with the words of an item that they matched, as both are written.

    Args:
        matched: The query's terms with the indexed term that each matched.
        there: Where the item's terms stand.
        other: The field of what stands nowhere there.
    """
    found = []
    for term, key in matched:
        field, written = there.get(key, (other, key.removeprefix(WRITTEN)))
        spelling = term.typed if term.factor == 1.0 else written  # 1 is the word itself
        found.append(Term(typed=term.typed, matched=spelling, field=field))
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


def reason(query: str, entry: Entry, evidence: Evidence, there: Places, close: float) -> str:
    """Why an entry was found, in one short line.

    Args:
        query: What was looked for.
        entry: What was found.
        evidence: What speaks for it.
        there: Its ``places``.
        close: Whether its name was typed; see ``NameIndex.close``.
    """
    if evidence.capability:
        return f"Capability inference ({evidence.capability})"
    name = _meant(query, entry)
    what = "name" if name == entry.name else "alias"
    if close >= EXACT:
        return "Exact name match" if what == "name" else f"Exact alias match ({name})"
    parts = []
    if close >= ONE_EDIT:
        parts.append(f"Fuzzy {what} match ({query.strip()} → {name})")
    elif close:
        parts.append(f"{what.title()} begins with “{query.strip()}”")
    elif evidence.name >= 0.75:
        parts.append(f"Fuzzy {what} match ({query.strip()} → {name})")
    # Where the name is told of, its words need not be.
    matched = [term for term in evidence.terms if not parts or term.field != "name"]
    if evidence.semantic is not None and evidence.semantic >= MEANING and not parts:
        shared = (intent.label for intent in intents(query) if _serves(intent, there))
        label = next(shared, "")
        parts.append(f"Semantic similarity ({label})" if label else "Semantic similarity")
    if matched and not close:
        parts.append(_keywords(matched[:MOST_TERMS], is_placed=bool(evidence.section)))
    text = " + ".join(parts)
    if text and evidence.section:
        text += f", in “{evidence.section.lstrip('# ')}”"
    weak = "Weak match" if evidence.semantic is None else "Weak semantic similarity"
    return text[:1].upper() + text[1:] or weak


def _meant(query: str, entry: Entry) -> str:
    """The name of an entry that is most like a part of the query; its own, where none is more."""
    if not entry.aliases:
        return entry.name
    typed = split_name(query)
    return max(entry.names, key=lambda name: fuzz.partial_ratio(typed, split_name(name)))


def _serves(intent: Intent, there: Places) -> bool:
    return any(phrase <= there.keys() for phrase in asking(intent))


def _beginning(indexed: str) -> str:
    """What all words of an indexed term begin with: a stem, but for a final y, stemmed to i."""
    return indexed.removeprefix(WRITTEN).removesuffix("i")


def _keywords(terms: Sequence[Term], *, is_placed: bool) -> str:
    """The words that matched, and in which fields, unless something else says where."""
    where = ""
    if not is_placed and all(term.field for term in terms):
        *others, last = sorted({term.field for term in terms}, key=FIELDS.index)
        where = f" in {', '.join(others)} and {last}" if others else f" in {last}"
    return f"keywords{where} ({', '.join(map(_correction, terms))})"


def _correction(term: Term) -> str:
    same = term.typed == term.matched or terms(term.typed) == terms(term.matched)
    return term.typed if same else f"{term.typed} → {term.matched}"
