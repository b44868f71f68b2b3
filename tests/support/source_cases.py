"""The source types that read files, each with a valid and a broken file."""

from pathlib import Path
from typing import Any

import msgspec

from repertory.sources.registry import build
from repertory.sources.source import Source
from tests.support.builders import write


class Case(msgspec.Struct, frozen=True):
    """The files of one source type.

    Attributes:
        type: The source type.
        good: The path and text of a file with one item; ``{n}`` is replaced by a number.
        broken: The path and text of an unreadable file.
        options: Further options of the configuration entry, besides type, name and path.
    """

    type: str
    good: tuple[str, str]
    broken: tuple[str, str]
    options: dict[str, Any] = {}

    def fill(self, root: Path, numbers: range) -> None:
        """Write a valid file for each number."""
        for number in numbers:
            place, text = (part.replace("{n}", str(number)) for part in self.good)
            write(root / place, text)

    def source(self, root: Path, name: str = "team") -> Source:
        """Build a source of this type on a folder."""
        entry = {"type": self.type, "path": str(root), "name": name, **self.options}
        [source] = build(entry, Path("/"))
        return source


CASES = [
    Case(
        "skills",
        ("s{n}/SKILL.md", "---\nname: s{n}\ndescription: Does {n}.\n---\nBody."),
        ("broken/SKILL.md", "---\nname: broken\n---\n"),
    ),
    Case(
        "python-skills",
        ("s{n}/skill.json", '{"name": "s{n}", "description": "Does {n}."}'),
        ("broken/skill.json", "{"),
    ),
    Case("markdown-skills", ("s{n}.md", "# S\n\nDoes {n}."), ("broken.md", "---\na: b")),
    Case("gemini-commands", ("c{n}.toml", 'prompt = "Does {n}."'), ("broken.toml", "prompt = ")),
    Case(
        "neuroscript",
        ("s{n}.ns.txt", "DEFINE PROCEDURE S{n}()\nCOMMENT:\nPURPOSE: Does {n}.\nENDCOMMENT\nEND"),
        ("broken.ns.txt", "DEFINE PROCEDURE B()\nCOMMENT:\nPURPOSE: x"),
    ),
    Case("documents", ("d{n}.md", "# D{n}\n\nAbout {n}."), ("broken.md", "\0")),
    Case(
        "documents", ("src/d{n}.py", "n = {n}"), ("broken.md", "\0"), {"include": ["**/src/*.py"]}
    ),
    Case(
        "tools",
        ("t{n}.json", '{"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}'),
        ("broken.json", '{"tools": ['),
    ),
]
