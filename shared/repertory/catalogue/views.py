"""The texts of an item that are embedded: the item itself, and the sections of a long body."""

import re
from collections.abc import Iterator

import msgspec

from repertory.catalogue import fences
from repertory.catalogue.names import split_name

# Increase this when views or the keys of stored records change, so that collections are rebuilt.
RECIPE = 5

LONG_BODY = 1_500  # characters; a shorter body adds nothing that its description lacks
SECTION_LEVEL = 2  # the deepest heading level of embedded sections
SECTION_TEXT = 400  # embedded characters of a section, about 100 tokens
MIN_SECTION_LENGTH = 80  # characters; shorter ones say too little
MAX_SECTIONS = 16
LEAD = MAX_SECTIONS  # the section number of a description's first sentence
MIN_LEAD_LENGTH = 20  # characters; an earlier full stop belongs to an abbreviation

# A heading may be followed by closing marks, and by attributes such as { #install }. The sign in
# "C#" is not a closing mark.
_CLOSING = re.compile(r"(?:^|\s)#+$")
_ATTRIBUTES = re.compile(r"\s\{:?\s?[#.][^{}]*\}$")
# Inline HTML tags; other text in angle brackets, such as List<Item>, may be literal.
_TAG = re.compile(
    r"(?i)</?(?:a|b|br|code|em|font|i|img|kbd|p|picture|small|source|span|strong|su[bp])"
    r"(?:\s[^<>]*)?/?>"
)
_ALT = re.compile(r"(?i)\salt=([\"'])([^\"'<>]+)\1")
BADGE = re.compile(r"\[!\[[^\[\]]*+\]\([^()]*+\)\]\([^()]*+\)")
# After a letter it is code, such as ``app[method](path)``; scripts without spaces need no space.
LINK = re.compile(r"(?<![A-Za-z0-9_])!?\[([^\[\]]*+)\]\([^()]*+\)")
_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_OF_OTHERS = re.compile(r"(?i)\W*(?:related (?:skill|command|tool)s|see also|when not to use)\b")
_SPACE = re.compile(r"\s+")
SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[\u3002\uff01\uff1f])(?=.)")


class Section(msgspec.Struct, frozen=True):
    """One part of a body under its heading.

    Attributes:
        heading: Without links: ``## Rotating keys``; empty before the first heading.
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
        heading: The heading of the section, as written; empty for other views.
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
            title = _CLOSING.sub("", plain_heading(found[2])).rstrip() or found[2][0]
            heading, lines = f"{found[1]} {title}", []
            continue
        lines.append(line)
    sections.append(Section(heading, "\n".join(lines).strip()))
    return [section for section in sections if section.heading or section.text]


def plain_heading(heading: str) -> str:
    """A heading without HTML tags, link targets, badges and attributes of Markdown extensions.

    If it is only a picture, the result is the picture's alternative text.
    """
    plain = _TAG.sub("", heading).strip() or " ".join(alt[2] for alt in _ALT.finditer(heading))
    plain = _ATTRIBUTES.sub("", plain)
    text = LINK.sub(r"\1", BADGE.sub("", plain)).strip()
    return text or LINK.sub(r"\1", LINK.sub(r"\1", plain)).strip()  # only badges


def views(name: str, server: str, description: str, body: str) -> list[View]:
    """The texts of an item that are embedded: the item itself first, then its parts.

    The item is ``server, split name: description`` (raw schema text makes the ranking worse, and
    parameter names do not improve it). The first sentence of a longer description is also embedded
    alone, since the vector of a long text is unspecific. A body of at least ``LONG_BODY``
    characters is split at headings of the first two levels, into at most ``MAX_SECTIONS`` sections.
    Sections such as "Related skills" are left out, because they describe other items.
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
