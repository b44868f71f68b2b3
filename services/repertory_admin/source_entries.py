"""Adds and removes ``[[sources]]`` entries of configuration files, keeping comments."""

from collections.abc import Mapping
from typing import Any

from repertory.project.configuration_file import checked
from repertory.sources.reading import toml

_HEAD = """\
# The sources that Repertory indexes in this project, besides those that it finds here.
# `repertory config check` checks this file, `repertory config show` explains every setting.
"""


def with_entry(text: str, entry: Mapping[str, Any]) -> str:
    """The text of a configuration file with one more source, after the existing ones.

    Raises:
        ConfigurationError: The file cannot be changed without losing something.
    """
    import tomlkit  # noqa: PLC0415 - for two commands
    from tomlkit.items import AoT  # noqa: PLC0415 - as above

    given = text or _HEAD
    document = tomlkit.parse(given if given.endswith("\n") else f"{given}\n")
    table = tomlkit.table()
    table.update(entry)
    sources = document.get("sources")
    if sources is None:
        document.add(tomlkit.nl())
        document.append("sources", tomlkit.aot())
        document["sources"].append(table)
    elif isinstance(sources, AoT):
        if sources[-1].as_string().endswith(("\n\n", "\n\r\n")):  # something follows
            table.add(tomlkit.nl())
        else:
            table.trivia.indent = "\n"
        sources.append(table)
    else:
        inline = tomlkit.inline_table()
        inline.update(entry)
        sources.append(inline)
    before = toml.parse(text).get("sources", [])
    return checked(document.as_string(), text, "sources", [*before, dict(entry)])


def without_entry(text: str, name: str) -> str:
    """The text of a configuration file without the sources of this name; unchanged if none match.

    Raises:
        ConfigurationError: The file cannot be changed without losing something.
    """
    import tomlkit  # noqa: PLC0415 - as above

    document = tomlkit.parse(text)
    sources = document.get("sources", [])
    for at in reversed(range(len(sources))):
        if sources[at].get("name") == name:
            del sources[at]
    if "sources" in document and not sources:
        del document["sources"]
    if document.as_string() == text:
        return text
    kept = [one for one in toml.parse(text).get("sources", []) if one.get("name") != name]
    return checked(document.as_string().rstrip("\n") + "\n", text, "sources", kept)


def names_in(text: str) -> list[str]:
    """The names of the sources of a configuration file."""
    return [str(one["name"]) for one in toml.parse(text).get("sources", []) if "name" in one]
