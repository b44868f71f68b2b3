"""Generates queries from the items themselves, for a catalogue without labels.

Such queries give flattering figures, because their words come from the searched texts. They show
whether typed names are found and whether a change does harm, but not how well people's own
questions are answered.
"""

import random
import re
import string
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from rapidfuzz.distance import OSA

from repertory.catalogue.names import compact_name
from repertory.catalogue.views import LONG_BODY, split_at_headings
from repertory.index.keywords.document import Entry
from repertory_eval.labelled import LabelledQuery, evenly
from repertory_eval.names import Names

MIN_PREFIX_LENGTH = 4  # letters and digits
MAX_SHARING = 5  # names that may share a prefix
MAX_QUERY_LENGTH = 1_000  # characters

MIN_SENTENCE_WORDS = 5  # of a description
MAX_SENTENCE_WORDS = 20
DROPPED_SHARE = 0.25  # of the words of a sentence, for a summary
SECTION_WORDS = 8  # from a section's text, added to its heading

_INSIDE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[\W_]+")
_WORD = re.compile(r"\w+(?:['.-]\w+)*")
# Full stops, and those of scripts without spaces.
_STOPS, _WIDE_STOPS = ".!?", "\u3002\uff01\uff1f"
_SENTENCE = re.compile(rf"(?<=[{_STOPS}])\s|(?<=[{_WIDE_STOPS}])")
# First words of descriptions that do not begin with a verb.
_NO_VERBS = {
    *("a", "an", "the", "this", "these", "it", "its", "you", "your", "use", "when", "if", "for"),
    *("how", "what", "in", "on", "with", "by", "to", "comprehensive", "expert", "guide"),
}


class GeneratedQuery(LabelledQuery, frozen=True, kw_only=True):
    """A query that was made from an item.

    Attributes:
        source: The source of the item.
    """

    source: str


def generate(
    entries: Sequence[Entry], limit: int = 0, bodies: Mapping[str, str] | None = None
) -> list[GeneratedQuery]:
    """Generate queries for a catalogue, deterministically, each tagged with its kind.

    The kinds are ``name``; its variants ``upper``, ``spaced``, ``compact``, ``camel``, ``snake``
    and ``kebab``; ``prefix``, the shortest prefix of at least four letters and digits that at most
    five names share; ``typo``, one edit anywhere in the name; ``task`` and ``summary``, from the
    first sentence of the description; ``section``, a heading of a long body with the first words
    below it. No item gets the same text twice.

    The right answers are all items with an equal name or alias; for ``typo``, all whose name is as
    close to the query; for ``task`` and ``summary``, all with an equal first sentence; for
    ``section``, all with a section that begins with the same words. The successor of a deprecated
    item is right, too.

    Args:
        entries: The catalogue.
        limit: The maximum number of queries per kind, evenly selected; 0 means all.
        bodies: The available bodies of items by id.
    """
    names = Names(entries)
    same_sentence: defaultdict[str, set[str]] = defaultdict(set)
    sections = {item: _sections(body) for item, body in (bodies or {}).items()}
    same_section: defaultdict[str, set[str]] = defaultdict(set)
    for item, starts in sections.items():
        for text in starts:
            same_section[text].add(item)
    texts: dict[str, list[tuple[Entry, str]]] = {kind: [] for kind in (*_KINDS, "section")}
    for entry in sorted(entries, key=lambda entry: entry.id):
        same_sentence[_sentence(entry)].add(entry.id)
        asked = {""}
        for kind, make in _KINDS.items():
            text = make(entry, names)
            if text not in asked and len(text) <= MAX_QUERY_LENGTH:
                asked.add(text)
                texts[kind].append((entry, text))
        if starts := sections.get(entry.id, []):
            texts["section"].append((entry, _random(entry).choice(starts)))

    def right(kind: str, entry: Entry, text: str) -> set[str]:
        if kind in _DESCRIBED:
            return same_sentence[_sentence(entry)]
        if kind == "section":
            return same_section[text]
        return names.within(text, edits=1) if kind == "typo" else names.of(entry.name)

    return [
        GeneratedQuery(
            source=entry.source,
            id=f"{kind} {entry.id}",
            text=text,
            tags=(kind,),
            grades=dict.fromkeys(sorted(right(kind, entry, text)), 1),
        )
        for kind, made in texts.items()
        for entry, text in evenly(made, limit)
    ]


def _variant(form: Callable[[str], str]) -> Callable[[Entry, Names], str]:
    """A maker of another form of the name; empty if the form would be a different name."""

    def make(entry: Entry, _names: Names) -> str:
        text = form(entry.name)
        return text if compact_name(text) == entry.compact != "" else ""

    return make


def _words(name: str) -> list[str]:
    return _SEPARATORS.sub(" ", _INSIDE.sub(" ", name)).lower().split()


def _camel(name: str) -> str:
    first, *rest = _words(name) or [""]
    return first + "".join(word.capitalize() for word in rest)


def _prefix(entry: Entry, names: Names) -> str:
    for length in range(MIN_PREFIX_LENGTH, len(entry.name)):
        text = entry.name[:length]
        key = compact_name(text)
        if (
            len(key) >= MIN_PREFIX_LENGTH
            and entry.compact != key == entry.compact[: len(key)]
            and names.sharing(key) <= MAX_SHARING
        ):
            return text
    return ""


def _typo(entry: Entry, _names: Names) -> str:
    """The name with one edit of its letters and digits; empty if it has none."""
    name, rng = entry.name if entry.compact else "", _random(entry)
    for place in rng.sample(range(len(name)), len(name)):
        before, here, after = name[:place], name[place], name[place + 1 :]
        letter = rng.choice(string.ascii_lowercase)
        edits = (
            before + after,
            before + letter + here + after,
            before + letter + after,
            before + after[:1] + here + after[1:],
        )
        for text in rng.sample(edits, len(edits)):
            typed = compact_name(text)
            if typed and OSA.distance(typed, entry.compact) == 1:
                return text
    return ""


def _sentence(entry: Entry) -> str:
    """The first sentence of the description, cut to ``MAX_SENTENCE_WORDS``; empty if too short."""
    first, *_ = _SENTENCE.split(entry.description, maxsplit=1)
    words = first.strip(f" {_STOPS}{_WIDE_STOPS}").split()
    return " ".join(words[:MAX_SENTENCE_WORDS]) if len(words) >= MIN_SENTENCE_WORDS else ""


def _task(entry: Entry, _names: Names) -> str:
    """``Lists all files of a folder.`` → ``how do I list all files of a folder``."""
    first, _, rest = _sentence(entry).partition(" ")
    verb = first.lower()
    if not verb.isalpha() or verb in _NO_VERBS or verb.endswith("ing"):
        return ""
    return f"how do I {_infinitive(verb)} {rest}"


def _infinitive(verb: str) -> str:
    if verb.endswith("ies"):
        return verb[:-3] + "y"
    if verb.endswith(("sses", "shes", "ches", "xes")):
        return verb[:-2]
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else verb


def _summary(entry: Entry, _names: Names) -> str:
    """The first sentence without a quarter of its words."""
    words, rng = _sentence(entry).split(), _random(entry)
    kept = sorted(rng.sample(range(len(words)), len(words) - int(len(words) * DROPPED_SHARE)))
    return " ".join(words[place] for place in kept)


def _sections(body: str) -> list[str]:
    """The beginning of each section of a long body: the heading and the first words below it."""
    if len(body) < LONG_BODY:
        return []
    found = ((one.title, _WORD.findall(one.text)) for one in split_at_headings(body))
    starts = (
        " ".join([title, *words[:SECTION_WORDS]])
        for title, words in found
        if title and len(words) >= SECTION_WORDS
    )
    return [text for text in starts if len(text) <= MAX_QUERY_LENGTH]


def _random(entry: Entry) -> random.Random:
    """A random generator that is the same in every run."""
    return random.Random(entry.id)  # noqa: S311 - not a secret


_DESCRIBED: Mapping[str, Callable[[Entry, Names], str]] = {"task": _task, "summary": _summary}
_KINDS: Mapping[str, Callable[[Entry, Names], str]] = {
    "name": _variant(str),
    "upper": _variant(str.upper),
    "spaced": _variant(lambda name: " ".join(_words(name))),
    "compact": _variant(lambda name: _SEPARATORS.sub("", name)),
    "camel": _variant(_camel),
    "snake": _variant(lambda name: "_".join(_words(name))),
    "kebab": _variant(lambda name: "-".join(_words(name))),
    "prefix": _prefix,
    "typo": _typo,
    **_DESCRIBED,
}
