"""Plain Markdown skills: one file, one skill, named after the file."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from typing_extensions import override

from repertory.catalogue.item import Item, Kind
from repertory.sources.folder import FolderSource
from repertory.sources.reading import frontmatter
from repertory.sources.reading.fields import extra, tags, text_field
from repertory.sources.reading.files import Found
from repertory.sources.reading.markdown import first_paragraph
from repertory.sources.reading.policy import authored
from repertory.sources.reading.problems import warning
from repertory.sources.reading_cache import Reading
from repertory.sources.skill_folders import SKILL_FILE
from repertory.sources.source import Source

_SUFFIXES = (".md", ".markdown")


class MarkdownSkills(FolderSource):
    """The Markdown skills below a folder; an id is the source's name and the place without suffix.

    Name and description come from the front matter, otherwise from the file's name and the first
    paragraph.
    """

    type = "markdown-skills"

    @override
    def wants(self, filename: str) -> bool:
        """Whether this is a Markdown file, except a ``SKILL.md``."""
        return filename.lower().endswith(_SUFFIXES) and filename != SKILL_FILE

    @override
    def file_id(self, place: str) -> str:
        """The source's name and the file's place without its suffix."""
        return f"{self.name}/{PurePosixPath(place).with_suffix('')}"

    @override
    def read(self, file: Found, text: str) -> Reading:
        """Read the one skill of a file."""
        parsed = frontmatter.parse(text, file.path)
        if parsed.fields is None:
            return Reading(problems=parsed.problems, broken=True)
        item_id = self.file_id(file.place)
        policy, wrong = authored(parsed.fields, file.path, item_id)
        item = Item(
            id=item_id,
            kind=Kind.SKILL,
            name=text_field(parsed.fields, "name") or PurePosixPath(file.place).stem,
            source=self.name,
            description=text_field(parsed.fields, "description") or first_paragraph(parsed.body),
            body=parsed.body.strip(),
            path=file.path,
            tags=tags(parsed.fields),
            extra=extra(parsed.fields),
            policy=policy,
        )
        problems = [*parsed.problems, *wrong]
        if not item.description:
            message = "The skill has no paragraph that says what it does; begin it with one."
            problems.append(warning(file.path, message, item=item_id))
        return Reading(items=[item], problems=problems)


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the source of a configuration entry."""
    return [MarkdownSkills.from_entry(entry, base)]
