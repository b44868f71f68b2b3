"""Python skills: folders with a manifest that describes the code beside it."""

from posixpath import split

from typing_extensions import override

from repertory.sources.folder import FolderSource
from repertory.sources.reading.fields import text_field
from repertory.sources.reading.files import Found
from repertory.sources.reading.structured import Defect, has_unfit, load
from repertory.sources.reading_cache import Reading
from repertory.sources.source import error, warning
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
        item_id = self.file_id(file.place)
        fields = load(text, MANIFESTS[split(file.place)[1]])
        if isinstance(fields, Defect):
            message = f"The manifest is broken: {fields.message}."
            return Reading(problems=[error(file.path, message, fields.line, item_id)], broken=True)
        if isinstance(fields, list):
            message = "The manifest is a list; write it as keys with values."
            return Reading(problems=[error(file.path, message, item=item_id)], broken=True)
        description = text_field(fields, "description")
        if not description:
            message = "The manifest has no `description`, so the skill was left out; give it one."
            return Reading(problems=[error(file.path, message, item=item_id)], broken=True)
        name = text_field(fields, "name") or item_id.rpartition("/")[2]
        item, wrong = self.item(file, fields, name=name, description=description)
        if has_unfit(text, MANIFESTS[split(file.place)[1]]):
            message = f"The manifest has {UNFIT} as escapes; they were left out."
            wrong = [*wrong, warning(file.path, message, item=item_id)]
        return Reading(items=[item], problems=wrong)
