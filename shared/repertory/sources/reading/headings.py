"""The headings of a document, rewritten with the marks of Markdown, at which a body is split."""

import re
from collections.abc import Iterable, Iterator

from repertory.catalogue.fences import after

_UNDERLINE = re.compile(r"([=\-~^\"'*+.:_#])\1{2,}")
_NO_TITLE = re.compile(r"(?:\s{4}|\t| {0,3}[-*+>|<][\s>|<]|\W*$)")
_NUMBERED = re.compile(r" {0,3}\d{1,9}[.)]\s")  # in Markdown an item of a list
_ASCIIDOC = re.compile(r"(={1,6})[ \t]+(\S.*)")
_VERBATIM = re.compile(r"([-.+/])\1{3,}")  # AsciiDoc's lines around code
_DEEPEST = 6


def with_marks(text: str, filename: str) -> str:
    """Rewrite headings that are underlined, or AsciiDoc's, as ``# Heading``.

    AsciiDoc's lines around code become fences; the rest stays.

    Args:
        text: The text of a document.
        filename: Its name, whose ending says how headings are written.
    """
    suffix = filename.lower().rpartition(".")[2]
    lines = text.split("\n")
    if suffix == "adoc":
        return "\n".join(_asciidoc(lines))
    return "\n".join(_underlined(lines, is_markdown=suffix not in ("rst", "txt")))


def _asciidoc(lines: Iterable[str]) -> Iterator[str]:
    around = ""
    for line in lines:
        bare = line.rstrip()
        if _VERBATIM.fullmatch(bare) and around in ("", bare):
            around = "" if around else bare
            # In Markdown, the line would make a heading of the one above, and "# a" would be one.
            yield "`" * len(bare) if bare[0] in "-." else line
            continue
        heading = None if around else _ASCIIDOC.match(line)
        yield f"{'#' * len(heading[1])} {heading[2].rstrip()}" if heading else line


def _underlined(lines: Iterable[str], *, is_markdown: bool) -> list[str]:
    marked: list[str] = []
    # In reStructuredText the first kind of line is that of the first level, and so on.
    levels = {"=": 1, "-": 2} if is_markdown else {}
    fence = ""
    size = 0  # lines of the paragraph so far
    for line in lines:
        bare = line.rstrip()
        before = fence
        if before or is_markdown or not bare.startswith("~"):  # which underlines a title elsewhere
            fence = after(before, bare)
        if before or fence:
            size = 0
        elif not _UNDERLINE.fullmatch(bare):
            size = size + 1 if bare else 0
        elif size == 1 and _is_title(marked[-1], bare, levels if is_markdown else None):
            title = marked.pop().strip()
            kind = bare[0]
            if not is_markdown and marked and marked[-1].rstrip() == bare:
                marked.pop()
                kind *= 2
            level = levels.setdefault(kind, min(len(levels) + 1, _DEEPEST))
            marked.append(f"{'#' * level} {title}")
            size = 0
            continue
        else:
            size = 0
        marked.append(line)
    return marked


def _is_title(line: str, underline: str, kinds: Iterable[str] | None) -> bool:
    """Whether a line with another below it is a heading; ``kinds`` are Markdown's."""
    if _NO_TITLE.match(line):
        return False
    if kinds is None:
        return len(underline) >= len(line.strip())
    return underline[0] in kinds and not _NUMBERED.match(line)
