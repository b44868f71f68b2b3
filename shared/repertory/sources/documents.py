"""The documents of a project: Markdown and other prose that is neither a skill nor ignored."""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from repertory.catalogue.item import Item, Kind
from repertory.sources.folder import FolderSource
from repertory.sources.neuroscript import SUFFIX as NEUROSCRIPT
from repertory.sources.reading import frontmatter
from repertory.sources.reading.fields import extra, tags, text_field
from repertory.sources.reading.files import Found
from repertory.sources.reading.gitignore import IGNORE_FILE, GitIgnore
from repertory.sources.reading.markdown import PARAGRAPH, first_heading, first_paragraph
from repertory.sources.reading.problems import warning
from repertory.sources.reading.text import cut
from repertory.sources.readings import Reading
from repertory.sources.skill_folders import SKILL_FILE
from repertory.sources.source import Scan, Source

_SUFFIXES = (".md", ".mdx", ".markdown", ".txt", ".rst", ".adoc")


class Documents(FolderSource):
    """The documents below a folder; an id is the source's name and the place.

    Left out are hidden files and folders, what ``.gitignore`` files below the root name, skills
    with all that lies beside them, and NeuroScript files.
    """

    type = "documents"

    def scan(self) -> Scan:
        """Read every document that changed, with the ``.gitignore`` files as they are now."""
        self._ignored = GitIgnore(self.path)
        return super().scan()

    def wants(self, filename: str) -> bool:
        """Whether the name is that of a document."""
        low = filename.lower()
        return (
            low.endswith(_SUFFIXES)
            and not low.endswith(NEUROSCRIPT)
            and not low.startswith(".")
            and filename != SKILL_FILE
        )

    def concerns(self, filename: str) -> bool:
        """Documents, and what decides which of them are left out."""
        return self.wants(filename) or filename in (IGNORE_FILE, SKILL_FILE)

    def enters(self, place: str) -> bool:
        """Whether a folder is neither hidden nor ignored nor a skill's."""
        if place.rpartition("/")[2].startswith(".") or self._ignored.ignores(f"{place}/"):
            return False
        return not os.path.lexists(self.path / place / SKILL_FILE)

    def chosen(self, files: list[Found]) -> list[Found]:
        """The files that are not ignored."""
        return [file for file in files if not self._ignored.ignores(file.place)]

    def read(self, file: Found, text: str) -> Reading:
        """The document of a file; broken front matter is taken as part of its text."""
        parsed = frontmatter.parse(text, file.path)
        item_id = self.file_id(file.place)
        fields, problems = parsed.fields or {}, list(parsed.problems)
        if parsed.fields is None:
            message = f"{problems[0].message} It was read as text."
            problems = [warning(file.path, message, problems[0].line, item_id)]
        described = (text_field(fields, key) for key in ("synopsis", "description", "summary"))
        item = Item(
            id=item_id,
            kind=Kind.DOCUMENT,
            name=text_field(fields, "title")
            or first_heading(parsed.body)
            or PurePosixPath(file.place).name,
            source=self.name,
            description=cut(next(filter(None, described), ""), PARAGRAPH)
            or first_paragraph(parsed.body),
            body=parsed.body.strip(),
            path=file.path,
            tags=tags(fields),
            extra=extra(fields),
        )
        return Reading(items=[item], problems=problems)


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """The one source of a configuration entry."""
    return [Documents.from_entry(entry, base)]
