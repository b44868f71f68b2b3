"""The documents of a project: prose and included files, except skills and ignored files."""

import os
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from typing_extensions import override

from repertory.catalogue.item import Kind
from repertory.catalogue.skill_format import SKILL_FILE, SKILL_FILES
from repertory.errors import ConfigurationError
from repertory.sources.entry import check_options, source_path
from repertory.sources.folder import FolderSource
from repertory.sources.neuroscript import SUFFIX as NEUROSCRIPT
from repertory.sources.reading import frontmatter
from repertory.sources.reading.fields import text_field
from repertory.sources.reading.files import EMPTY, NO_TEXT, Found
from repertory.sources.reading.for_programs import use_of
from repertory.sources.reading.headings import with_marks
from repertory.sources.reading.markdown import MAX_PARAGRAPH_LENGTH, first_heading, first_paragraph
from repertory.sources.reading.patterns import is_usable, spec_of
from repertory.sources.reading_cache import Reading
from repertory.sources.source import Scan, Source, warning
from repertory.system.paths import as_listed, is_inside, real_path
from repertory.text import cut, normalized

_SUFFIXES = (".md", ".mdx", ".markdown", ".txt", ".rst", ".adoc")
_MAX_PATTERNS = 100
_SYNOPSES = ("synopsis", "description", "summary", "excerpt", "abstract")  # in front matter


class Documents(FolderSource):
    """The documents below a folder. An id is the source's name plus the place.

    Hidden files and folders, files excluded by a ``.gitignore`` below the root, folders of skills,
    NeuroScript files, the files of Markdown skills and text files for other programs are left out.

    ``include`` has patterns in ``.gitignore`` syntax for text files other than prose. The last part
    of a pattern matches file names, as in ``src/**/*.py``.
    """

    type = "documents"
    gitignore = True
    leaves_files_to = ("documents", "markdown-skills")

    def __init__(self, *, name: str, path: Path | str, include: Sequence[str] = ()) -> None:
        super().__init__(name=name, path=path)
        self._include = tuple(include)
        patterns = [normalized("NFC", pattern) for pattern in include]  # like file names
        self._names = [pattern.rpartition("/")[2] or "*" for pattern in patterns]
        self._included = spec_of(patterns)
        self._of_skills: Sequence[str] = ()  # the paths of skill folders, as given and resolved
        self._skills: list[str] = []  # the files of skills that the last scan passed over

    @classmethod
    def build(cls, entry: Mapping[str, Any], base: Path) -> list[Source]:
        """Build the source of an entry with a ``path`` and an optional ``name`` and ``include``."""
        check_options(entry, "name", "path", "include")
        path = source_path(entry, base)
        name = entry.get("name") or Path(real_path(path)).name or cls.type
        return [cls(name=name, path=path, include=_patterns(entry.get("include", [])))]

    @override
    def identity(self) -> Mapping[str, Any]:
        included = {"include": list(self._include)} if self._include else {}
        return {**super().identity(), **included}

    @override
    def share(self, sources: Sequence[FolderSource]) -> None:
        super().share(sources)
        skills = [one for one in sources if one.type == "skills" and not one.gitignore]
        self._of_skills = [path for one in skills for path in (str(one.path), one.real_path)]

    @override
    def scan(self) -> Scan:
        self._skills = []
        return super().scan()

    @override
    def deciding_files(self) -> Iterable[str]:
        return [*super().deciding_files(), *self._skills]

    @override
    def wants(self, filename: str) -> bool:
        if filename.startswith(".") or filename == SKILL_FILE:
            return False
        if filename.lower().endswith(NEUROSCRIPT):
            return False
        composed = normalized("NFC", filename)
        return is_prose(filename) or any(fnmatchcase(composed, name) for name in self._names)

    @override
    def concerns(self, filename: str) -> bool:
        """Whether this is a document, or a file that decides which documents are left out."""
        return super().concerns(filename) or filename == SKILL_FILE

    @override
    def decides(self, filename: str) -> bool:
        return filename in SKILL_FILES or super().decides(filename)

    @override
    def passes_over(self, place: str) -> str:
        """Why a folder is not read: it is hidden, ignored, or belongs to a skill."""
        if reason := super().passes_over(place):
            return reason
        folder = os.path.join(self.path, place)  # noqa: PTH118 - speed
        real = os.path.join(self.real_path, place)  # noqa: PTH118 - speed
        is_of_skills = any(is_inside(at, one) for at in (folder, real) for one in self._of_skills)
        for name in SKILL_FILES if is_of_skills else (SKILL_FILE,):
            skill = os.path.join(folder, name)  # noqa: PTH118 - speed
            if os.path.lexists(skill) and as_listed(folder, name) == name:
                self._skills.append(skill)
                return f"it is a skill ({name}), so its files are not documents"
        return ""

    @override
    def chosen(self, files: list[Found]) -> list[Found]:
        return [file for file in files if is_prose(file.place) or self._is_included(file)]

    def _is_included(self, file: Found) -> bool:
        return self._included.match_file(normalized("NFC", file.place))

    @override
    def read(self, file: Found, text: str) -> Reading:
        """Read the document of a file. Broken front matter becomes part of its text.

        The title of a file other than prose is its file name, and it has no synopsis.
        """
        filename = PurePosixPath(file.place).name
        if not is_prose(file.place):
            item, _ = self.item(
                file, {}, kind=Kind.DOCUMENT, name=filename, description="", body=text
            )
            return Reading(items=[item])
        if not self._is_included(file) and (use := use_of(filename, text)):
            return Reading(hidden=use)
        parsed = frontmatter.parse(text, file.path)
        fields, problems = parsed.fields or {}, list(parsed.problems)
        if parsed.fields is None:
            message = f"{problems[0].message} It was read as text."
            problems = [warning(file.path, message, problems[0].line)]
        title, synopsis = described(fields, parsed.body)
        item, wrong = self.item(
            file,
            fields,
            kind=Kind.DOCUMENT,
            name=title or filename,
            description=synopsis,
            body=with_marks(parsed.body, filename),
        )
        return Reading(items=[item], problems=[*problems, *wrong])

    @override
    def _read_file(self, file: Found) -> Reading:
        reading = super()._read_file(file)
        if any(one.message == EMPTY for one in reading.problems):
            return Reading(hidden="it is empty" if is_prose(file.place) else "")
        if is_prose(file.place):
            return reading
        # A pattern also matches images, which need no problem.
        problems = [one for one in reading.problems if one.message not in NO_TEXT]
        return msgspec.structs.replace(reading, problems=problems)


def described(fields: dict[str, Any], body: str) -> tuple[str, str]:
    """The title and the synopsis of a document, from its front matter or its first lines."""
    given = (text_field(fields, key) for key in _SYNOPSES)
    synopsis = cut(next(filter(None, given), ""), MAX_PARAGRAPH_LENGTH)
    title = text_field(fields, "title") or text_field(fields, "name") or first_heading(body)
    return title, synopsis or first_paragraph(body)


def is_prose(place: str) -> bool:
    """Whether a file is prose, judging by its name."""
    return place.lower().endswith(_SUFFIXES)


def _patterns(given: object) -> list[str]:
    """Validate the patterns of an ``include``.

    Raises:
        ConfigurationError: It is not a list of patterns.
    """
    if not isinstance(given, list) or len(given) > _MAX_PATTERNS:
        raise ConfigurationError(
            f"`include` of a source of documents is a list of at most {_MAX_PATTERNS} patterns "
            'like "src/**/*.py".'
        )
    for pattern in given:
        if not (isinstance(pattern, str) and pattern.strip() and is_usable(pattern)):
            raise ConfigurationError(
                f"`include` of a source of documents has {pattern!r}, which is not a pattern; "
                'write one like "src/**/*.py".'
            )
    return given
