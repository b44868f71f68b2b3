"""Built-in skills, given as text by the program or the configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from repertory.catalogue.item import Item, Kind
from repertory.errors import ConfigurationError
from repertory.sources.entry import check_options, checked_name
from repertory.sources.source import Problem, Scan, Source, error, warning
from repertory.text import UNFIT, clean, is_clean

MAX_DESCRIPTION_LENGTH = 500


class BuiltinSkills(Source):
    """Skills from a mapping of names to texts. An id is the source's name plus the skill's."""

    type = "builtin-skills"
    location = "built in"

    def __init__(self, *, name: str = "builtin", skills: Mapping[str, str]) -> None:
        self.name = checked_name(name)
        self._skills = dict(skills)

    @override
    def configuration(self) -> object:
        return self._skills

    @override
    def identity(self) -> Mapping[str, Any]:
        return {"type": self.type, "name": self.name}

    @override
    def scan(self) -> Scan:
        items: list[Item] = []
        problems: list[Problem] = []
        for name, content in sorted(self._skills.items()):
            item_id = f"{self.name}/{name}"
            if not content.strip():
                message = f"The built-in skill {name!r} has no text and was left out."
                problems.append(error("", message, item=item_id))
                continue
            if not is_clean(content):
                message = f"The built-in skill {name!r} has {UNFIT}; they were left out."
                problems.append(warning("", message, item=item_id))
            items.append(
                Item(
                    id=item_id,
                    kind=Kind.SKILL,
                    name=name,
                    source=self.name,
                    description=description(content),
                    body=clean(content),
                )
            )
        return Scan(items=items, problems=problems)


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the source of a configuration entry whose ``skills`` map names to texts.

    Raises:
        ConfigurationError: The entry is invalid.
    """
    check_options(entry, "name", "skills")
    skills = entry.get("skills")
    if not isinstance(skills, Mapping):
        raise ConfigurationError("Built-in skills need `skills`, a mapping of names to texts.")
    for name, content in skills.items():
        if not (isinstance(name, str) and name and is_clean(name) and isinstance(content, str)):
            raise ConfigurationError(f"The built-in skill {name!r} needs a name and a text.")
    source = BuiltinSkills(name=entry.get("name") or "builtin", skills=skills)
    source.origin = str(base)
    return [source]


def description(content: str) -> str:
    """Return the first ``MAX_DESCRIPTION_LENGTH`` characters of a text."""
    return clean(content)[:MAX_DESCRIPTION_LENGTH]
