"""Plain Markdown skills, one per file and named after it."""

from pathlib import PurePosixPath
from typing import Any

from typing_extensions import override

from repertory.catalogue.skill_format import SKILL_FILE
from repertory.sources.folder import FolderSource
from repertory.sources.reading import frontmatter
from repertory.sources.reading.fields import hidden_by, text_field, when_to_use
from repertory.sources.reading.files import Found
from repertory.sources.reading.markdown import described
from repertory.sources.reading_cache import Reading
from repertory.sources.source import warning
from repertory.text import one_line

_SUFFIXES = (".md", ".markdown")
_KINDS = (".prompt", ".agent", ".chatmode")  # before the suffix, as VS Code names its files


class MarkdownSkills(FolderSource):
    """The Markdown skills below a folder. An id is the source's name plus the place, less ``.md``.

    Name and description come from the front matter, otherwise from the file's name and the first
    paragraph.
    """

    type = "markdown-skills"

    @override
    def wants(self, filename: str) -> bool:
        return filename.lower().endswith(_SUFFIXES) and filename != SKILL_FILE

    @override
    def file_id(self, place: str) -> str:
        return f"{self.name}/{place.removesuffix('.md')}"  # other suffixes stay, for unique ids

    @override
    def read(self, file: Found, text: str) -> Reading:
        parsed = frontmatter.parse(text, file.path)
        if parsed.fields is None:
            return Reading(problems=parsed.problems, broken=True)
        if hidden := hidden_by(parsed.fields):
            return Reading(hidden=hidden)
        description = _description(parsed.fields) or described(parsed.body)
        item, wrong = self.item(
            file,
            parsed.fields,
            name=text_field(parsed.fields, "name") or _name(file.place),
            description=f"{description} {when_to_use(parsed.fields)}".strip(),
            body=parsed.body,
        )
        problems = [*parsed.problems, *wrong]
        if not item.description:
            message = "The skill has no paragraph that says what it does; begin it with one."
            problems.append(warning(file.path, message))
        return Reading(items=[item], problems=problems)


def _name(place: str) -> str:
    """The name of a file without suffix and kind: ``review`` for ``review.prompt.md``."""
    stem = PurePosixPath(PurePosixPath(place).stem)
    return stem.stem if stem.suffix in _KINDS else stem.name


def _description(fields: dict[str, Any]) -> str:
    r"""The description of an agent. Claude Code writes line breaks in it as ``\n``, unquoted."""
    text = text_field(fields, "description")
    return one_line(text.replace("\\n", "\n")) if "\\n\\n" in text else text
