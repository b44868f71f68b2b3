"""The first heading and the first paragraph of prose of a text."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from repertory.catalogue import fences
from repertory.catalogue.views import without_attributes
from repertory.text import cut, one_line

MAX_PARAGRAPH_LENGTH = 500
_HEAD_SIZE = 16_000  # characters that are searched

# Where the host puts what is typed after a command.
_ARGUMENTS = re.compile(r"\$ARGUMENTS\b|\{\{args\}\}")
_COMMENT = re.compile(r"\s{0,3}<!--")
_HEADING = re.compile(r"\s{0,3}(#{1,6}|={1,6})[ \t]+(\S.*)")
_CLOSING = re.compile(r"(?:^|\s)[#=]+$")  # what may follow a heading
_UNDERLINE = re.compile(r"([=\-~^\"'*+.:_])\1{2,}")  # Markdown's and reStructuredText's
# Badges, images, tags, tables, link targets, directives, attributes, comments of AsciiDoc, MDX's
# code, rules: no prose.
_NOT_PROSE = re.compile(
    r"\[?!\[|<|\||\[[^\]]+\]:|\.\. |:[!\w-]+:|//(?!\w)|(?:if|ifn|end|include|image)\w*::"
    r"|(?:import|export)\s[^'\"]*['\"]|([-*_])(?:[ \t]*\1){2,}$|=+ +=[= ]*$"
)
_HTML_TITLE = re.compile(r"(?i)<h1\b[^<>]*>((?:[^<]|<(?!/?h1\b))*+)</h1>")
_TAG = re.compile(
    r"(?i)</?(?:a|b|br|code|em|font|i|img|kbd|picture|small|source|span|strong|sub|sup)\b[^<>]*>"
)
_BADGE = re.compile(r"\[!\[[^\[\]]*+\]\([^()]*+\)\]\([^()]*+\)")
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+\)")
# Scripts without spaces have letters before bold words; x**2 is code.
_BOLD = re.compile(r"(?<![A-Za-z0-9_*])\*\*(?=\S)([^*]++)(?<=\S)\*\*")
_QUOTE = re.compile(r"\A\s{0,3}>[ \t]?(?:\[!\w+\]\s*\Z)?")  # with GitHub's marks of alerts
# Several labels with short values, such as a date and a status, one with a number alone, short
# parts between bars, and links alone or beside a word, such as those to the languages or the
# sections of a document: they say nothing of the contents.
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

    One of a lower level that prose precedes is that of a section.
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

    It has no marks of links, bold words and quotations. One that consists of labels or
    links is the last choice.
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
    """The first paragraph of a skill, without the place of arguments; empty if it is no more."""
    text = _ARGUMENTS.sub("…", first_paragraph(body))
    return text if any(map(str.isalnum, text)) else ""


def _plain(text: str) -> str:
    """A text on one line, with the words of its links and bold words alone, without badges."""
    text = _TAG.sub(lambda tag: " " if tag[0].lower().startswith("<br") else "", text)
    return one_line(_BOLD.sub(r"\1", _LINK.sub(r"\1", _BADGE.sub("", text))))


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield each heading, with 1 or 2 for its level, and each paragraph, with 0, at the start."""
    paragraph: list[str] = []
    fence = ""
    for line in [*_lines(text), ""]:
        if fence:
            fence = _after(fence, line)
            continue
        bare = line.strip()
        if len(paragraph) == 1 and _UNDERLINE.fullmatch(bare):
            yield 1 if bare[0] == "=" else 2, one_line(without_attributes(paragraph.pop()))
            continue
        heading, comment, fence = _HEADING.match(line), _COMMENT.match(line), _after("", line)
        if bare and not (heading or comment or fence or _UNDERLINE.fullmatch(bare)):
            paragraph.append(line)
            continue
        yield from _ended(paragraph)
        paragraph.clear()
        if heading:
            title = _CLOSING.sub("", without_attributes(heading[2]))
            yield min(len(heading[1]), 2), one_line(title)


def _ended(paragraph: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield a paragraph of prose, or the title that is in HTML."""
    if paragraph and not _NOT_PROSE.match(paragraph[0].lstrip()):
        prose = takewhile(_is_no_row, paragraph)
        yield 0, one_line(" ".join(_QUOTE.sub("", line, count=1) for line in prose))
    elif title := _HTML_TITLE.search(" ".join(paragraph)):
        yield 1, one_line(title[1])


def _is_no_row(line: str) -> bool:
    """Whether a line is no row of a table, which may follow a sentence at once."""
    return not line.lstrip().startswith("|")


def _lines(text: str) -> Iterator[str]:
    """The lines at a text's start; marks of boxes and what follows AsciiDoc's title are empty."""
    is_header = False
    for line in text[:_HEAD_SIZE].split("\n"):
        if not line.strip() or fences.after("", line):
            is_header = False
        yield "" if is_header or line.lstrip().startswith(":::") else line
        is_header |= line.startswith("= ")


def _after(fence: str, line: str) -> str:
    """The fence, or the comment, that is open after a line."""
    if fence == "<!--" or (not fence and _COMMENT.match(line)):
        return "" if "-->" in line else "<!--"
    return fences.after(fence, line)
