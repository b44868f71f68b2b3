"""The sources of a marketplace: the skills of its plugins, and their commands and agents."""

import msgspec
from typing_extensions import override

from repertory.errors import SourceError
from repertory.sources.fetched.folders import FetchedFolder
from repertory.sources.markdown_skills import MarkdownSkills
from repertory.sources.marketplace.fetcher import IDS
from repertory.sources.marketplace.plugin import PROMPTS, SKILLS
from repertory.sources.reading.files import Found
from repertory.sources.skill_folders import SkillFolders
from repertory.system.untrusted_files import read_bytes

_MAX_SIZE = 64 * 2**20  # bytes of the list that the fetch wrote


class _PluginFiles(FetchedFolder):
    """Reads the files of plugins' items, with the ids that the fetch gave them.

    Attributes:
        kind: The kind of items.
    """

    kind: str
    _ids: dict[str, str]

    @override
    def chosen(self, files: list[Found]) -> list[Found]:
        try:
            data = read_bytes(str(self.content.path / IDS), _MAX_SIZE)
            self._ids = msgspec.json.decode(data, type=dict[str, dict[str, str]])[self.kind]
        except (OSError, msgspec.MsgspecError, KeyError) as error:
            raise SourceError(
                f"The content of {self.location} is damaged; remove and add it again."
            ) from error
        return [file for file in files if file.place in self._ids]

    @override
    def file_id(self, place: str) -> str:
        return f"{self.name}/{self._ids.get(place, place)}"


class PluginSkills(_PluginFiles, SkillFolders):
    """The skills of all plugins. An id consists of source, plugin and folder."""

    kind = SKILLS


class PluginPrompts(_PluginFiles, MarkdownSkills):
    """The commands and agents of all plugins. An id consists of source, plugin and file."""

    kind = PROMPTS
