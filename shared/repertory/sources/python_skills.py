"""Python skills: folders with a manifest that describes the code beside it."""

from posixpath import split

from typing_extensions import override

from repertory.sources.folder import FolderSource
from repertory.sources.reading.fields import text_field
from repertory.sources.reading.files import Found
from repertory.sources.reading.structured import Defect, has_unfit, load
from repertory.sources.reading_cache import Reading, unread
from repertory.sources.source import warning
from repertory.text import UNFIT

# If a folder has several of these, the first is its manifest.
MANIFESTS = {
    "skill.json": "json",
    "skill.toml": "toml",
    "skill.yaml": "yaml",
    "skill.yml": "yaml",
    "manifest.json": "json",
    "manifest.toml": "toml",
    "manifest.yaml": "yaml",
    "manifest.yml": "yaml",
}


class PythonSkills(FolderSource):
    """The Python skills below a folder. An id is the source's name plus the skill's place.

    Only manifests are read; no code is imported or run.
    """

    type = "python-skills"
    item_files = MANIFESTS

    @override
    def wants(self, filename: str) -> bool:
        return filename in MANIFESTS

    @override
    def read(self, file: Found, text: str) -> Reading:
        syntax = MANIFESTS[split(file.place)[1]]
        fields = load(text, syntax)
        if isinstance(fields, Defect):
            return unread(file, f"The manifest is broken: {fields.message}.", fields.line)
        if isinstance(fields, list):
            return unread(file, "The manifest is a list; write it as keys with values.")
        description = text_field(fields, "description")
        if not description:
            message = "The manifest has no `description`, so the skill was left out; give it one."
            return unread(file, message)
        name = text_field(fields, "name") or self.file_id(file.place).rpartition("/")[2]
        item, wrong = self.item(file, fields, name=name, description=description)
        if has_unfit(text, syntax):
            message = f"The manifest has {UNFIT} as escapes; they were left out."
            wrong = [*wrong, warning(file.path, message)]
        return Reading(items=[item], problems=wrong)
