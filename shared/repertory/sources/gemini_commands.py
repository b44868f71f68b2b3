"""The custom commands of Gemini CLI: one TOML file, one command."""

from typing_extensions import override

from repertory.sources.folder import FolderSource
from repertory.sources.reading.fields import text_field
from repertory.sources.reading.files import Found
from repertory.sources.reading.markdown import described
from repertory.sources.reading.structured import Defect, has_unfit, load
from repertory.sources.reading_cache import Reading
from repertory.sources.source import error, warning
from repertory.text import UNFIT

_SUFFIX = ".toml"


class GeminiCommands(FolderSource):
    """The commands below a folder; an id is the source's name and the place without ``.toml``.

    The host puts colons between folders and file: ``git/commit.toml`` is ``git:commit``.
    """

    type = "gemini-commands"

    @override
    def wants(self, filename: str) -> bool:
        return filename.endswith(_SUFFIX)

    @override
    def file_id(self, place: str) -> str:
        return f"{self.name}/{place.removesuffix(_SUFFIX)}"

    @override
    def read(self, file: Found, text: str) -> Reading:
        fields = load(text, "toml")
        if isinstance(fields, Defect):
            message = f"The command is broken: {fields.message}."
            return Reading(problems=[error(file.path, message, fields.line)], broken=True)
        assert isinstance(fields, dict)  # TOML has no other values at the top
        prompt = fields.pop("prompt", None)
        if not isinstance(prompt, str) or not prompt.strip():
            message = "The command has no `prompt`, so it was left out; write what it asks for."
            return Reading(problems=[error(file.path, message)], broken=True)
        item, problems = self.item(
            file,
            fields,
            name=file.place.removesuffix(_SUFFIX).replace("/", ":"),
            description=text_field(fields, "description") or described(prompt),
            body=prompt,
        )
        if has_unfit(text, "toml"):
            message = f"The command has {UNFIT} as escapes; they were left out."
            problems = [*problems, warning(file.path, message)]
        return Reading(items=[item], problems=problems)
