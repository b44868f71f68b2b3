"""Rewrites the headings of a document to Markdown's, at which a body is split."""

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
    """Rewrite underlined headings and AsciiDoc's headings as ``# Heading``.

    AsciiDoc's lines around code become fences. Other text is unchanged.

    Args:
        text: The text of a document.
        filename: Its name, whose suffix determines the syntax of headings.
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
            # In Markdown, the line would make the previous one a heading, and "# a" would be one.
            yield "`" * len(bare) if bare[0] in "-." else line
            continue
        heading = None if around else _ASCIIDOC.match(line)
        yield f"{'#' * len(heading[1])} {heading[2].rstrip()}" if heading else line


def _underlined(lines: Iterable[str], *, is_markdown: bool) -> list[str]:
    marked: list[str] = []
    # In reStructuredText, the order of first use determines the level of each kind of line.
    levels = {"=": 1, "-": 2} if is_markdown else {}
    fence = ""
    size = 0  # lines of the paragraph so far
    for line in lines:
        bare = line.rstrip()
        before = fence
        if before or is_markdown or not bare.startswith("~"):  # "~" underlines titles elsewhere
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
    """Whether an underlined line is a heading. ``kinds`` are Markdown's underlines, else None."""
    if _NO_TITLE.match(line):
        return False
    if kinds is None:
        return len(underline) >= len(line.strip())
    return underline[0] in kinds and not _NUMBERED.match(line)
