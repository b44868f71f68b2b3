"""The custom commands of Gemini CLI, one per TOML file."""

from typing_extensions import override

from repertory.sources.folder import FolderSource
from repertory.sources.reading.fields import text_field
from repertory.sources.reading.files import Found
from repertory.sources.reading.markdown import described
from repertory.sources.reading.structured import Defect, has_unfit, load
from repertory.sources.reading_cache import Reading, unread
from repertory.sources.source import warning
from repertory.text import UNFIT

_SUFFIX = ".toml"
_COMMANDS = "commands"


class GeminiCommands(FolderSource):
    """The commands below a folder. An id is the source's name plus the place without ``.toml``.

    As in the host, names have colons between the parts of the place: ``git/commit.toml`` is
    ``git:commit``. In the host's folder of extensions, only TOML files in an extension's
    ``commands`` count.
    """

    type = "gemini-commands"

    @override
    def wants(self, filename: str) -> bool:
        return filename.endswith(_SUFFIX)

    @override
    def passes_over(self, place: str) -> str:
        _, *inner = place.split("/")
        if self._has_extensions and inner and inner[0] != _COMMANDS:
            return "it has no commands of an extension"
        return super().passes_over(place)

    @override
    def chosen(self, files: list[Found]) -> list[Found]:
        found = super().chosen(files)
        if self._has_extensions:
            found = [one for one in found if one.place.split("/")[1:2] == [_COMMANDS]]
        return found

    @override
    def file_id(self, place: str) -> str:
        return f"{self.name}/{place.removesuffix(_SUFFIX)}"

    @override
    def read(self, file: Found, text: str) -> Reading:
        fields = load(text, "toml")
        if isinstance(fields, Defect):
            return unread(file, f"The command is broken: {fields.message}.", fields.line)
        assert isinstance(fields, dict)  # the top level of TOML is always a table
        prompt = fields.pop("prompt", None)
        if not isinstance(prompt, str) or not prompt.strip():
            message = "The command has no `prompt`, so it was left out; write what it asks for."
            return unread(file, message)
        parts = file.place.removesuffix(_SUFFIX).split("/")
        item, problems = self.item(
            file,
            fields,
            name=":".join(parts[2:] if self._has_extensions else parts),
            description=text_field(fields, "description") or described(prompt),
            body=prompt,
        )
        if has_unfit(text, "toml"):
            message = f"The command has {UNFIT} as escapes; they were left out."
            problems = [*problems, warning(file.path, message)]
        return Reading(items=[item], problems=problems)

    @property
    def _has_extensions(self) -> bool:
        """Whether the folder is the host's folder of extensions."""
        return self.path.parts[-2:] == (".gemini", "extensions")
