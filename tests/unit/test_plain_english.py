"""The prose of the repository is plain English: no idioms that make a reader stumble."""

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
THIS = Path(__file__).relative_to(ROOT).as_posix()
# The first two list the idioms; the results quote queries.
EXEMPT = {THIS, "docs/glossary.md", "benchmarks/RESULTS.md"}
CATALOGUES = ("examples/skills/", "examples/markdown-skills/", "examples/docs/")  # data, not prose

BANNED = (
    "all the same",
    "anew",
    "as it were",
    "be had",
    "by and by",
    "for so long",
    "gives up on",
    "in force",
    "is told",
    "likewise",
    "nobody",
    "on their way",
    "somebody",
    "there are none",
    "there is none",
    "whoever",
)
_BANNED = re.compile(rf"\b(?:{'|'.join(map(re.escape, BANNED))})\b", re.IGNORECASE)


def prose(name: str, text: str) -> Iterator[tuple[int, str]]:
    """The comments, docstrings and messages of a Python file, or all lines of another file."""
    if not name.endswith(".py"):
        yield from enumerate(text.splitlines(), start=1)
        return
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in kinds:
            yield from enumerate(token.string.splitlines(), start=token.start[0])


def idioms_in(name: str, text: str) -> list[str]:
    """Each banned idiom in a file's prose, as ``file:line: idiom``, also across a line break."""
    if not _BANNED.search(" ".join(line.strip().lstrip("#").strip() for line in text.splitlines())):
        return []  # saves the slow tokenisation
    lines = list(prose(name, text))
    hits = []
    for (number, line), (_, following) in zip_longest(lines, lines[1:], fillvalue=(0, "")):
        joined = f"{line} {following.strip().lstrip('#').strip()}"
        hits += [
            f"{name}:{number}: {match[0]}"
            for match in _BANNED.finditer(joined)
            if match.start() < len(line)
        ]
    return hits


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.md", "It is\ntold.", ["a.md:1: is told"]),
        ("a.md", "A whoeverish word.", []),
        ("a.py", "# made anew\nanew = 'Likewise'\n", ["a.py:1: anew", "a.py:2: Likewise"]),
        ("a.py", "anew = 1\n", []),
    ],
)
def test_an_idiom_is_found_in_prose_only(name: str, text: str, expected: list[str]) -> None:
    """Names in code are not prose, and a line break does not hide an idiom."""
    assert idioms_in(name, text) == expected


def test_no_file_has_a_banned_idiom() -> None:
    """Comments, docstrings, messages and documents use the words of the glossary."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.toml", "*.yml", "*.html", "Makefile"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [name for name in listed.stdout.splitlines() if name not in EXEMPT]
    names = [name for name in names if not name.startswith(CATALOGUES) and (ROOT / name).exists()]
    assert len(names) > 300
    hits = [hit for name in names for hit in idioms_in(name, (ROOT / name).read_text("utf-8"))]
    assert not hits, "\n".join(hits)
