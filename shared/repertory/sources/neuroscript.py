"""NeuroScript procedures: ``.ns.txt`` files with a comment block for each procedure."""

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec
from typing_extensions import override

from repertory.catalogue.item import Item, Kind
from repertory.sources.folder import FolderSource
from repertory.sources.reading.files import Found
from repertory.sources.reading_cache import Reading
from repertory.sources.source import error, warning
from repertory.text import listed, one_line

SUFFIX = ".ns.txt"

_DEFINE = re.compile(r"\s*DEFINE\s+PROCEDURE\s+([A-Za-z_][\w.]*)\s*\(([^)]*)\)")
_OPEN = re.compile(r"\s*DEFINE\s+PROCEDURE\s+[A-Za-z_][\w.]*\s*\([^)]*$")
_MAX_ARGUMENT_LINES = 50
_COMMENT = re.compile(r"\s*COMMENT:")
_END_COMMENT = re.compile(r"\s*ENDCOMMENT\b")
_FIELD = re.compile(r"\s*([A-Z][A-Z_]+):[ \t]*(.*)")


class Procedure(msgspec.Struct, frozen=True, kw_only=True):
    """One procedure.

    Attributes:
        name: As defined.
        arguments: The names of its arguments.
        line: The line of its definition, from 1.
        fields: The fields of its comment block by name (PURPOSE, INPUTS, …); None if the block is
            not closed.
        code: The text after the comment block.
    """

    name: str
    arguments: list[str]
    line: int
    fields: dict[str, str] | None
    code: str

    def body(self) -> str:
        """Render the procedure as Markdown: its signature, its comment and its code."""
        parts = [f"{self.name}({', '.join(self.arguments)})"]
        for field, text in (self.fields or {}).items():
            if field != "PURPOSE" and text:
                parts.append(f"## {field.replace('_', ' ').capitalize()}\n\n{text}")
        if self.code:
            parts.append(f"## Code\n\n```neuroscript\n{self.code}\n```")
        return "\n\n".join(parts)


class NeuroScript(FolderSource):
    """The procedures of the ``.ns.txt`` files below a folder.

    An id is the source's name, the file's place without its suffix, and the procedure's name.
    """

    type = "neuroscript"
    many_in_a_file = True

    @override
    def wants(self, filename: str) -> bool:
        return filename.endswith(SUFFIX)

    @override
    def file_id(self, place: str) -> str:
        return f"{self.name}/{place.removesuffix(SUFFIX)}"

    @override
    def read(self, file: Found, text: str) -> Reading:
        items, problems, broken = [], [], False
        for procedure in procedures(text):
            item_id = f"{self.file_id(file.place)}/{procedure.name}"
            if procedure.fields is None:
                message = (
                    f"The comment of {procedure.name} is never closed, so it was left out; end it "
                    "with ENDCOMMENT."
                )
                problems.append(error(file.path, message, procedure.line, item_id))
                broken = True
                continue
            purpose = one_line(procedure.fields.get("PURPOSE", ""))
            if not purpose:
                message = f"{procedure.name} has no PURPOSE; say in its COMMENT block what it does."
                problems.append(warning(file.path, message, procedure.line, item_id))
            item = Item(
                id=item_id,
                kind=Kind.SKILL,
                name=procedure.name,
                source=self.name,
                description=purpose,
                body=procedure.body(),
                path=file.path,
                extra={"arguments": procedure.arguments},
            )
            items.append(item)
        if not items and not problems:
            message = (
                "The file defines no procedure; write one as DEFINE PROCEDURE Name(arguments)."
            )
            problems.append(warning(file.path, message))
        return Reading(items=items, problems=problems, broken=broken)


def procedures(text: str) -> Iterator[Procedure]:
    """Yield every procedure of a NeuroScript text, in order, without running anything."""
    lines = _joined(text.split("\n"))
    found = {at: match for at, line in enumerate(lines) if (match := _DEFINE.match(line))}
    for start, end in pairwise([*found, len(lines)]):
        name, arguments = found[start].groups()
        fields, code = _comment(lines[start + 1 : end])
        yield Procedure(
            name=name, arguments=listed(arguments), line=start + 1, fields=fields, code=code
        )


def _joined(lines: list[str]) -> list[str]:
    """Join argument lists that span several lines into the first line, and blank the others."""
    at = 0
    while at < len(lines):
        if _OPEN.match(lines[at]):
            end = next(
                (
                    one
                    for one in range(at + 1, min(at + _MAX_ARGUMENT_LINES, len(lines)))
                    if ")" in lines[one]
                ),
                at,
            )
            lines[at : end + 1] = [" ".join(lines[at : end + 1]), *[""] * (end - at)]
            at = end
        at += 1
    return lines


def _comment(lines: list[str]) -> tuple[dict[str, str] | None, str]:
    """Return the fields of the comment block that starts a procedure, and the code after it."""
    opening = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    if opening == len(lines) or not _COMMENT.match(lines[opening]):
        return {}, "\n".join(lines).strip()
    closing = next((at for at, line in enumerate(lines) if _END_COMMENT.match(line)), None)
    if closing is None:
        return None, ""
    fields: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines[opening + 1 : closing]:
        if found := _FIELD.match(line):
            current = fields.setdefault(found[1], [])
            line = found[2]  # noqa: PLW2901 - the rest of the line is the field's first
        current.append(line.strip())
    texts = {field: "\n".join(parts).strip() for field, parts in fields.items()}
    return texts, "\n".join(lines[closing + 1 :]).strip()
