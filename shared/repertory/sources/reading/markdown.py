"""The first heading and the first paragraph of prose in a text."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from repertory.catalogue import fences
from repertory.catalogue.views import BADGE, LINK, plain_heading
from repertory.text import cut, one_line

MAX_PARAGRAPH_LENGTH = 500
_HEAD_SIZE = 16_000  # characters that are searched

# Placeholders for the text that a user types after a command.
_ARGUMENTS = re.compile(r"\$ARGUMENTS\b|\{\{args\}\}")
_COMMENT = re.compile(r"\s{0,3}<!--")
_HEADING = re.compile(r"\s{0,3}(#{1,6}|={1,6})[ \t]+(\S.*)")
_CLOSING = re.compile(r"(?:^|\s)[#=]+$")  # optional marks at the end of a heading
_UNDERLINE = re.compile(r"([=\-~^\"'*+.:_])\1{2,}")  # Markdown's and reStructuredText's
# Not prose: badges, images, tags, tables, link targets, directives, attributes, AsciiDoc comments,
# MDX code, rules.
_NOT_PROSE = re.compile(
    r"\[?!\[|<|\||\[[^\]]+\]:|\.\. |:[!\w-]+:|//(?!\w)|(?:if|ifn|end|include|image)\w*::"
    r"|(?:import|export)\s[^'\"]*['\"]|([-*_])(?:[ \t]*\1){2,}$|=+ +=[= ]*$"
)
_HTML_TITLE = re.compile(r"(?i)<h1\b[^<>]*>((?:[^<]|<(?!/?h1\b))*+)</h1>")
_TAG = re.compile(
    r"(?i)</?(?:a|b|br|code|em|font|i|img|kbd|picture|small|source|span|strong|sub|sup)\b[^<>]*>"
)
# In scripts without spaces, letters may precede bold words. ``x**2`` is code.
_BOLD = re.compile(r"(?<![A-Za-z0-9_*])\*\*(?=\S)([^*]++)(?<=\S)\*\*")
_QUOTE = re.compile(r"\A\s{0,3}>[ \t]?(?:\[!\w+\]\s*\Z)?")  # with GitHub's marks of alerts
# Texts that say nothing about the content: several labels with short values, such as a date and a
# status; a label with only a number; short parts between bars; and only links or links with a word,
# such as those to translations or sections.
_LABELS = re.compile(
    r"(?:\*\*[^*:]{1,40}(?::\*\*|\*\*:)[^*]{0,60}){2,}"
    r"|[*_]{0,3}[^*:|]{1,40}[*_]{0,3} ?[:\uff1a][*_ ]{0,4}[\d.,:/()+-][\d.,:/()+*_ -]{0,30}"
    r"|[^|]{1,60} \|(?: [^|]{1,60} \|)+ [^|]{1,60}"
    r"|(?:[^|·•/\[\]()]{1,24}[|·•/] ?)*+!?\[[^\[\]]*+\]\([^()]*+\)"
    r"(?: ?[|·•/] ?(?:!?\[[^\[\]]*+\]\([^()]*+\)|[^|·•/\[\]()]{1,24}))*+"
    r"|[-*+|·•/\s]*+(?:!?\[[^\[\]]*+\]\([^()]*+\)[-*+|·•/\s]*+)++"
)


def first_heading(text: str) -> str:
    """Return the first Markdown, reStructuredText or AsciiDoc heading; empty if none.

    A heading of a lower level after prose does not count, as it is that of a section.
    """
    has_prose = False
    for level, block in _blocks(text):
        title = _plain(block) if level == 1 or (level and not has_prose) else ""
        if title:
            return title
        has_prose = has_prose or not (level or _LABELS.fullmatch(block))
    return ""


def first_paragraph(text: str) -> str:
    """Return the first paragraph of prose, cut and on one line; empty if none.

    Marks of links, bold words and quotations are removed. A paragraph that consists of labels or
    links is only used if there is no other.
    """
    labels = ""
    for level, block in _blocks(text):
        if level or not any(map(str.isalnum, block)):
            continue
        if not _LABELS.fullmatch(block):
            return cut(_plain(block), MAX_PARAGRAPH_LENGTH)
        labels = labels or block
    return cut(_plain(labels), MAX_PARAGRAPH_LENGTH)


def described(body: str) -> str:
    """The first paragraph of a skill, with arguments as "…"; empty if nothing else is left."""
    text = _ARGUMENTS.sub("…", first_paragraph(body))
    return text if any(map(str.isalnum, text)) else ""


def _plain(text: str) -> str:
    """A text on one line, without badges and without the marks of links and bold words."""
    text = _TAG.sub(lambda tag: " " if tag[0].lower().startswith("<br") else "", text)
    return one_line(_BOLD.sub(r"\1", LINK.sub(r"\1", BADGE.sub("", text))))


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the headings with their level, at most 2, and the paragraphs with 0."""
    paragraph: list[str] = []
    fence = ""
    for line in [*_lines(text), ""]:
        if fence:
            fence = _after(fence, line)
            continue
        bare = line.strip()
        if len(paragraph) == 1 and _UNDERLINE.fullmatch(bare):
            yield 1 if bare[0] == "=" else 2, one_line(plain_heading(paragraph.pop()))
            continue
        heading, comment, fence = _HEADING.match(line), _COMMENT.match(line), _after("", line)
        if bare and not (heading or comment or fence or _UNDERLINE.fullmatch(bare)):
            paragraph.append(line)
            continue
        yield from _ended(paragraph)
        paragraph.clear()
        if heading:
            title = _CLOSING.sub("", plain_heading(heading[2]))
            yield min(len(heading[1]), 2), one_line(title)


def _ended(paragraph: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield a paragraph of prose, or an HTML title."""
    if paragraph and not _NOT_PROSE.match(paragraph[0].lstrip()):
        prose = takewhile(_is_no_row, paragraph)
        yield 0, one_line(" ".join(_QUOTE.sub("", line, count=1) for line in prose))
    elif title := _HTML_TITLE.search(" ".join(paragraph)):
        yield 1, one_line(title[1])


def _is_no_row(line: str) -> bool:
    """Whether a line is not a row of a table, which may directly follow a sentence."""
    return not line.lstrip().startswith("|")


def _lines(text: str) -> Iterator[str]:
    """The lines at a text's start.

    Marks of boxes, lists of attributes and the header of AsciiDoc are empty lines.
    """
    is_header = False
    for line in text[:_HEAD_SIZE].split("\n"):
        if not line.strip() or fences.after("", line):
            is_header = False
        bare = line.strip()
        is_mark = bare.startswith(":::") or (bare.startswith("{:") and bare.endswith("}"))
        yield "" if is_header or is_mark else line
        is_header |= line.startswith("= ")


def _after(fence: str, line: str) -> str:
    """The fence or comment that is open after a line."""
    if fence == "<!--" or (not fence and _COMMENT.match(line)):
        return "" if "-->" in line else "<!--"
    return fences.after(fence, line)
