"""The texts of an item that are embedded: the item itself, and the sections of a long body."""

import re
from collections.abc import Iterator

import msgspec

from repertory.catalogue import fences
from repertory.catalogue.names import split_name

# Raise it when views or the keys of stored records change: older collections are then rebuilt.
RECIPE = 4

LONG_BODY = 1_500  # characters; a shorter body adds nothing that its description lacks
SECTION_LEVEL = 2  # of the headings of sections that are embedded
SECTION_TEXT = 400  # characters of a section that are embedded, about 100 tokens
MIN_SECTION_LENGTH = 80  # characters; shorter ones say too little
MAX_SECTIONS = 16
LEAD = MAX_SECTIONS  # the section number of a description's first sentence
MIN_LEAD_LENGTH = 20  # characters; an earlier full stop belongs to an abbreviation

# What may follow a heading: its marks again, and attributes such as { #install }. C# ends with a
# sign of its own.
_CLOSING = re.compile(r"(?:^|\s)#+$")
_ATTRIBUTES = re.compile(r"\s\{:?\s?[#.][^{}]*\}$")
# Of HTML within a line; another one, such as List<Item>, may be meant as it is.
_TAG = re.compile(
    r"(?i)</?(?:a|b|br|code|em|font|i|img|kbd|p|picture|small|source|span|strong|su[bp])"
    r"(?:\s[^<>]*)?/?>"
)
_ALT = re.compile(r"(?i)\salt=([\"'])([^\"'<>]+)\1")
_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_OF_OTHERS = re.compile(r"(?i)\W*(?:related (?:skill|command|tool)s|see also|when not to use)\b")
_SPACE = re.compile(r"\s+")
SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[\u3002\uff01\uff1f])(?=.)")


class Section(msgspec.Struct, frozen=True):
    """One part of a body under its heading.

    Attributes:
        heading: As written, with its marks: ``## Rotating keys``; empty before the first heading.
        text: The text up to the next heading, headings excluded.
    """

    heading: str
    text: str

    @property
    def title(self) -> str:
        """The heading without its marks."""
        return self.heading.lstrip("#").strip()


class View(msgspec.Struct, frozen=True):
    """One text that is embedded, and its section.

    Attributes:
        section: The section's number; None for the item itself, ``LEAD`` for the first sentence of
            its description.
        heading: The section's, as written; empty for the others.
        text: The text that is embedded.
    """

    section: int | None
    heading: str
    text: str


def split_at_headings(body: str, deepest: int = 6) -> list[Section]:
    """Split Markdown at its headings, down to a level; headings in fenced code do not count."""
    sections: list[Section] = []
    lines: list[str] = []
    heading = fence = ""
    for line in body.splitlines():
        fence = fences.after(fence, line)
        if not fence and (found := _HEADING.match(line)) and len(found[1]) <= deepest:
            sections.append(Section(heading, "\n".join(lines).strip()))
            title = _CLOSING.sub("", without_attributes(found[2])).rstrip() or found[2][0]
            heading, lines = f"{found[1]} {title}", []
            continue
        lines.append(line)
    sections.append(Section(heading, "\n".join(lines).strip()))
    return [section for section in sections if section.heading or section.text]


def without_attributes(heading: str) -> str:
    """A heading without tags of HTML, and without what extensions of Markdown write behind it.

    One that is a picture is its text.
    """
    plain = _TAG.sub("", heading).strip() or " ".join(alt[2] for alt in _ALT.finditer(heading))
    return _ATTRIBUTES.sub("", plain).rstrip()


def views(name: str, server: str, description: str, body: str) -> list[View]:
    """The texts of an item that are embedded: the item itself first, then its parts.

    The item is ``server, split name: description`` (raw schema text lowers the ranking, and
    parameter names do not raise it). The first sentence of a longer description is embedded once
    more alone, since the vector of a long text is unspecific. Only a body over ``LONG_BODY``
    characters has sections of its own; they are its parts under headings of the first two levels,
    ``MAX_SECTIONS`` at most. Sections such as "Related skills" say what other items do.
    """
    title = split_name(name)
    head = ", ".join(part for part in (split_name(server), title) if part)
    first = View(None, "", _squeeze(f"{head}: {description}" if description else head))
    return [first, *_lead_view(title, _squeeze(description)), *_section_views(title, body)]


def _lead_view(title: str, description: str) -> Iterator[View]:
    end = SENTENCE_END.search(description, MIN_LEAD_LENGTH)
    if end:
        yield View(LEAD, "", f"{title}: {description[: end.start()]}")


def _section_views(title: str, body: str) -> Iterator[View]:
    if len(body) < LONG_BODY:
        return
    number = 0
    for section in split_at_headings(body, deepest=SECTION_LEVEL):
        text = _squeeze(section.text[: 2 * SECTION_TEXT])[:SECTION_TEXT]
        is_own = section.heading and not _OF_OTHERS.match(section.title)
        if is_own and len(text) >= MIN_SECTION_LENGTH:
            yield View(number, section.heading, f"{title}, {section.title}: {text}")
            number += 1
            if number == MAX_SECTIONS:
                return


def _squeeze(text: str) -> str:
    return _SPACE.sub(" ", text).strip()
