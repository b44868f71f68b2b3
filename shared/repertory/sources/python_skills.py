"""Python skills: folders with a manifest that describes the code beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from repertory.catalogue.item import Item, Kind
from repertory.sources.folder import FolderSource
from repertory.sources.reading.fields import extra, tags, text_field
from repertory.sources.reading.files import Found
from repertory.sources.reading.policy import authored
from repertory.sources.reading.problems import error
from repertory.sources.reading.structured import Defect, load
from repertory.sources.reading_cache import Reading
from repertory.sources.source import Source

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
    """The Python skills below a folder; an id is the source's name and the skill's place.

    Only manifests are read: no code is imported or run.
    """

    type = "python-skills"

    @override
    def wants(self, filename: str) -> bool:
        """Whether this is a manifest's name."""
        return filename in MANIFESTS

    @override
    def chosen(self, files: list[Found]) -> list[Found]:
        """Select one manifest for each folder."""
        rank = {name: number for number, name in enumerate(MANIFESTS)}
        first: dict[str, Found] = {}
        for file in sorted(files, key=lambda file: rank[_split(file.place)[1]]):
            first.setdefault(_split(file.place)[0], file)
        return sorted(first.values())

    @override
    def file_id(self, place: str) -> str:
        """The source's name and the skill's folder."""
        return f"{self.name}/{_split(place)[0] or self.path.name}"

    @override
    def read(self, file: Found, text: str) -> Reading:
        """Read the one skill of a manifest."""
        item_id = self.file_id(file.place)
        fields = load(text, MANIFESTS[_split(file.place)[1]])
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
        policy, wrong = authored(fields, file.path, item_id)
        item = Item(
            id=item_id,
            kind=Kind.SKILL,
            name=text_field(fields, "name") or item_id.rpartition("/")[2],
            source=self.name,
            description=description,
            path=file.path,
            tags=tags(fields),
            extra=extra(fields),
            policy=policy,
        )
        return Reading(items=[item], problems=wrong)


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the source of a configuration entry."""
    return [PythonSkills.from_entry(entry, base)]


def _split(place: str) -> tuple[str, str]:
    """Split a place into its folder, empty for the root, and the file's name."""
    folder, _, filename = place.rpartition("/")
    return folder, filename
