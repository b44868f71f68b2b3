"""Splits long tasks into steps, which are searched separately, and merges the results."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from repertory.catalogue.actions import of_name
from repertory.catalogue.names import split_name
from repertory.index.keywords.tokens import ENGLISH, terms

MAX_STEPS = 12  # steps of one task; in longer tasks, several sentences form one step
MAX_LENGTH = 4_000  # characters of one text that are searched for words
MAX_EMBEDDED = 1_000  # characters of a step that are embedded; twelve take about half a second
MIN_TERMS = 2  # words of a step, without stop words; a shorter step joins its neighbour
# Imperatives that a task of plain sentences must have. With fewer, the text is one need with its
# context.
MIN_REQUESTS = 2
WRAPPED_LENGTH = 60  # a line of at least this many characters may continue on the next one

# The patterns expect single spaces as the only white space, so each takes linear time.
_MARK = re.compile(
    r"(?:[-*+•‣▪·\u2013\u2014]|\(?\d{1,2}[.):]|\(?[a-z]\)|step \d{1,2}[.):]?) ", re.I
)
_SENTENCE = re.compile(
    r"(?<=[.!?;…])(?<!\b\w\.)(?<!\b\d\d\.)"  # neither "e.g." nor "10." ends a sentence,
    r"(?<!\b(?:dr|jr|mr|ms|sr|st|vs)\.)(?<!\bmrs\.)(?<!\bprof\.)(?<!\bapprox\.) "  # nor "Dr."
    r"|(?<=[\u3002\uff01\uff1f\uff1b])"  # the same marks of Chinese and Japanese
    r"| (?=\(?\d{1,2}[.)] )",
    re.I,
)
_LINK = re.compile(
    r"(?<!\bsince)(?<!\buntil)(?<!\bby)"
    r"(?:,| and| but)? (?:and )?(?:then|after that|after which|afterwards|finally|lastly),? "
    r"|,(?: and)? next, ",
    re.I,
)
_OPENING = re.compile(
    r"(?:(?:and|but|then|also|next|after that|afterwards|finally|lastly|first(?:ly)?|second(?:ly)?"
    r"|third(?:ly)?|additionally|furthermore|moreover),? )+",
    re.I,
)
_POLITE = re.compile(
    r"(?:(?:please|kindly|(?:can|could|will|would) you|help me(?: to)?|let us|let['\u2019]?s"
    r"|(?:i|we) (?:must|(?:have|need|want|wish|would like) to)|(?:i|we)['\u2019]d like to),? )+",
    re.I,
)
_CLAUSE = re.compile(r", and |, | and ", re.I)
_FIRST_WORD = re.compile(r"\W*(\w*)")
_VERBS = frozenset({"do", "get", "let", "use"})  # stop words with which a request may begin
_OBJECT = frozenset(
    {"a", "all", "an", "each", "every", "my", "our", "that", "the", "these", "this", "your"}
)
_PRONOUNS = frozenset({"her", "him", "it", "them", "these", "those"})


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """The items that were found for the texts of one task.

    Attributes:
        order: The rows, best first.
        confidence: The highest confidence of each row for any text, 0…1.
        text: The place of that text, by row.
        firsts: The rows that fit a step best; none if there is only one text.
    """

    order: Sequence[int]
    confidence: Mapping[int, float]
    text: Mapping[int, int]
    firsts: frozenset[int] = frozenset()


def texts_of_task(text: str) -> list[str]:
    """The texts to search for a task: its beginning, then its steps if it has several."""
    text = text.strip()  # so that its beginning is not blank
    found = steps(text)
    return [text[:MAX_LENGTH], *(found if len(found) > 1 else ())]


def steps(text: str) -> list[str]:
    """Split a task into at most ``MAX_STEPS`` steps; a text with a single need stays whole.

    Line breaks, list entries, words like "then", ends of sentences, and commas between requests
    separate steps.
    """
    found: list[str] = []
    is_list = False
    for piece, is_entry in _pieces(text):
        if found and (_is_short(piece) or _is_short(found[-1])):
            found[-1] += f" {piece}"
        else:
            is_list |= is_entry and bool(found)
            found.append(piece)
    is_context = bool(found) and found[0].endswith(";")
    if is_list or sum(map(_is_request, found)) - is_context >= MIN_REQUESTS:
        return _grouped([part for piece in found for part in _cut(piece)])
    return _cut(text) or [text]


def merge(found: Sequence[Iterable[tuple[int, float]]]) -> Merged:
    """Merge the items found for the whole task and for each of its steps.

    The best item of each step comes first, then the others. Both parts are sorted by confidence.

    Args:
        found: The rows found for the whole task, then for each step: best first, with their
            confidences, 0…1, rounded to six digits, so that smaller differences are ties.
    """
    if len(found) == 1:
        alone = dict(found[0])
        return Merged(order=[*alone], confidence=alone, text=dict.fromkeys(alone, 0))
    best: dict[int, tuple[float, int, int]] = {}
    firsts = set()
    for number, rows in enumerate(found):
        for place, (row, confidence) in enumerate(rows):
            this = (-confidence, place, number)
            if row not in best or this < best[row]:
                best[row] = this
            if number and not place:
                firsts.add(row)
    return Merged(
        order=sorted(best, key=lambda row: (row not in firsts, best[row], row)),
        confidence={row: -lowest for row, (lowest, _, _) in best.items()},
        text={row: number for row, (_, _, number) in best.items()},
        firsts=frozenset(firsts),
    )


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a text, and whether each is a list entry or follows a linking word."""
    for line in _lines(text):
        is_entry = True
        for sentence in _SENTENCE.split(line):
            mark = _MARK.match(sentence)
            is_entry |= mark is not None
            for part in _LINK.split(sentence[mark.end() :] if mark else sentence):
                opening = _OPENING.match(part)
                if piece := part[opening.end() :] if opening else part:
                    for clause in _clauses(piece):
                        yield clause, is_entry or opening is not None
                        is_entry = True
                is_entry = True
            is_entry = False


def _clauses(sentence: str) -> list[str]:
    """The requests joined by commas and "and"; the whole sentence if not all parts are requests.

    A request begins with a known verb, or with any word before an article and object: "import the
    model, generate previews and bake the lights". The first may begin with a polite phrase. A short
    part about "it" is joined to the part before, which says what "it" is.
    """
    polite = _POLITE.match(sentence)
    start = polite.end() if polite else 0
    parts: list[str] = []
    for part in _CLAUSE.split(sentence[start:]):
        if parts and _is_short(part) and _is_about_the_same(part):
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    if len(parts) < MIN_REQUESTS or not all(map(_is_whole_request, parts)):
        return [sentence]
    return [sentence[:start] + parts[0], *parts[1:]]


def _is_about_the_same(part: str) -> bool:
    """Whether a part is a request with a pronoun as its object: "email it"."""
    return _is_request(part) and not _PRONOUNS.isdisjoint(split_name(part).split()[1:2])


def _is_whole_request(part: str) -> bool:
    words = split_name(part).split()
    if len(words) < MIN_TERMS or _is_short(part) or not _is_request(part):
        return False
    return bool(of_name(words[0])) or not _OBJECT.isdisjoint(words[1:3])


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, with wrapped lines joined; some may be blank."""
    line = ""
    for raw in text.splitlines():
        written = " ".join(raw.split())
        mark = _MARK.match(written)
        if len(line) >= WRAPPED_LENGTH and not mark and written[:1].islower():
            line += f" {written}"
            continue
        yield line
        line = written
    yield line


def _is_short(piece: str) -> bool:
    return len({*terms(piece.lower())}) < MIN_TERMS  # in capitals, a stop word may be an acronym


def _is_request(piece: str) -> bool:
    """Whether a sentence may be an imperative, by its first word: neither "it" nor "requires"."""
    first = _FIRST_WORD.match(piece)
    word = first[1].lower() if first else ""
    is_form = word.endswith("ing") or (word.endswith("s") and not word.endswith("ss"))
    return word in _VERBS or not (not word or word in ENGLISH or is_form)


def _cut(piece: str) -> list[str]:
    """A piece in parts of at most ``MAX_LENGTH`` characters, without blank ones."""
    parts = (piece[start : start + MAX_LENGTH] for start in range(0, len(piece), MAX_LENGTH))
    return [part for part in parts if not part.isspace()]


def _grouped(pieces: Sequence[str]) -> list[str]:
    """Join pieces into at most ``MAX_STEPS`` texts.

    The first and the last piece are often the request, so they stay separate.
    """
    if len(pieces) <= MAX_STEPS:
        return [*pieces]
    first, *middle, last = pieces
    total, before, count = sum(map(len, middle)), 0, MAX_STEPS - 2
    groups: list[list[str]] = [[] for _ in range(count)]
    for piece in middle:
        groups[before * count // total].append(piece)
        before += len(piece)
    return [first, *(" ".join(group)[:MAX_LENGTH] for group in groups if group), last]
