"""``repertory config``: shows and checks the settings, and trusts configurations."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from repertory.embedding.models import DEFAULT
from repertory.errors import ConfigurationError, UsageError
from repertory.project.trust_requests import (
    defined_by,
    described,
    env_files,
    known_as,
    trust_request,
)
from repertory.project.workspace import Workspace
from repertory.settings import PROJECT_FILE, Settings
from repertory.sources.entry import source_path
from repertory.sources.fetched.urls import masked
from repertory.sources.registry import build, digest_to_trust
from repertory.system.paths import expanded
from repertory.text import counted
from repertory.trust import digest_now
from repertory.values import SETTINGS
from repertory_admin import terminal
from repertory_admin.app import command, group
from repertory_admin.auditing import audited
from repertory_admin.confirmation import can_ask, confirm
from repertory_admin.exits import ExitCode
from repertory_admin.options import (
    ASKING,
    FLAGGED,
    INDEXING,
    STORE,
    Flags,
    Output,
    OutputOption,
)
from repertory_admin.target import here, index_tools
from repertory_admin.text import safe, short_path

config = group("config")

_REDIS = re.compile(r"(rediss?://)(?:([^:@/?#]*)(?::[^@/?#]*)?@)?([\w.:\[\]-]+(?:/\d*)?)")

FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Files like .mcp.json and repertory.toml.", show_default=False
    ),
]


@command(
    config,
    "show",
    settings=FLAGGED,
    examples=("repertory config show", "REPERTORY_SEARCH_LIMIT=5 repertory config show"),
)
def show(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """Show every setting: its value, its origin, its variable and its flag, if it has one.

    A flag wins over the environment, which wins over the project's repertory.toml, which wins over
    the user's config.toml, which wins over the default.
    """
    settings, _ = here(flags)
    rows: list[dict[str, Any]] = [
        {
            "key": setting.key,
            "value": _shown(settings, setting.field, secret=setting.secret),
            "from": settings.origins.get(setting.field, "default"),
            "flag": setting.flag if setting.field in FLAGGED else None,
            "variable": setting.variable,
            "meaning": setting.doc,
        }
        for setting in SETTINGS.values()
    ]
    file = settings.file
    if output is Output.JSON:
        terminal.show_json(
            {
                "file": str(file) if file else None,
                "settings": rows,
                "sources": [
                    _without_secrets(entry)
                    for entry in (*settings.sources, *(one.entry for one in settings.added))
                ],
                "mcpConfigs": [str(path) for path in settings.mcp_configs],
            }
        )
    else:
        _show(settings, rows)


def _show(settings: Settings, rows: list[dict[str, Any]]) -> None:
    terminal.show_table(
        ("Key", "Value", "From", "Meaning, variable and flag"),
        [
            (
                row["key"],
                short_path(_text(row["value"])),
                short_path(row["from"]),
                f"{row['meaning']} {', '.join(filter(None, (row['variable'], row['flag'])))}",
            )
            for row in rows
        ],
        styles={"Value": lambda _: "bold cyan", "From": _origin_style},
    )
    file = settings.file
    configs = [short_path(str(path)) for path in settings.mcp_configs]
    found = "those found here and in the home directory"
    terminal.say()
    terminal.show_facts(
        {
            "file": short_path(str(file)) if file else "none; `repertory init` writes one",
            "sources": (_sources(settings.sources) if settings.sources else found)
            + (f", and {len(settings.added)} fetched from elsewhere" if settings.added else ""),
            "mcp": ", ".join(configs) or "none named",
        }
    )


def _sources(entries: Sequence[Mapping[str, Any]]) -> str:
    """The number of sources, and how many of them only some groups may see."""
    restricted = sum("visible_to" in entry for entry in entries)
    shown = f", {restricted} of them visible to groups only" if restricted else ""
    return f"{len(entries)} in the file{shown}"


@command(config, "check", examples=("repertory config check",))
def check(flags: Flags) -> None:
    """Check the configuration without reading a source.

    It prints one line for each problem; exit code 1 if there are any.
    """
    try:
        settings, directory = here(flags)
        workspace = Workspace(settings, directory)
        problems = list(_problems(workspace))
    except ConfigurationError as error:
        problems = [str(error)]
    for problem in problems:
        terminal.show_text(problem)
    if problems:
        raise typer.Exit(ExitCode.NOT_FOUND)
    for reason in (*workspace.notices, *workspace.sources.withheld()):
        terminal.show_text(reason)
    number = len(settings.sources) + len(settings.added)
    named = counted(number, "source") if number else "it names no source, so they are discovered"
    terminal.say(
        f"{short_path(str(settings.file))} is valid: {named}."
        if settings.file
        else "There is no repertory.toml. The sources that are discovered here are valid."
    )


@command(
    config,
    "trust",
    settings=(*STORE, *INDEXING, *ASKING),
    examples=("repertory config trust .mcp.json",),
)
def trust(flags: Flags, files: FilesArgument) -> None:
    """Trust configuration files that were found, until they change.

    The MCP servers of such a file may then be run, and their tools are indexed. A repertory.toml
    may then name folders outside of its own, any model, and policies for all items. In a terminal
    you see which programs, addresses and variables it names, and are asked first.
    """
    settings, directory = here(flags)
    workspace = Workspace(settings, directory)
    names: set[str] = set()
    for file in files:
        with audited(settings, directory, "trust", [expanded(file).absolute()]):
            if file.name == PROJECT_FILE:
                _trust_project(file, workspace, flags)
            else:
                names |= _trust_servers(file, workspace)
    # A file that does not belong to this catalogue is trusted for another directory.
    names &= {source.name for source in workspace.catalogue().sources if source.asks_server}
    if names:
        index_tools(settings, directory, sorted(names))


def _trust_project(file: Path, workspace: Workspace, flags: Flags) -> None:
    found = trust_request(file, flags)
    if found.wishes:
        _ask(f"{file} asks for {', '.join(found.wishes)}.")
    workspace.trust.trust(file, found.digest)
    wishes = f": it may use {', '.join(found.wishes)}" if found.wishes else ""
    terminal.show_text(f"Trusted {file} until it changes{wishes}. The next search follows it.")


def _trust_servers(file: Path, workspace: Workspace) -> set[str]:
    """Trust a file that defines MCP servers, and return their names."""
    path = expanded(file).absolute()
    is_there = os.path.isfile(path)  # noqa: PTH113 - False also behind a closed link
    digest = digest_now(path, digest_to_trust) if is_there else ""  # before its servers are shown
    sources = defined_by(file, workspace)
    # The arguments are not shown, because they may contain secrets.
    _ask(f"{file} has MCP servers: {described(sources)}. Their arguments are in the file.")
    for one in known_as(file, workspace):
        workspace.trust.trust(one, digest, env_files(sources), digest_to_trust)
    terminal.show_text(f"Trusted {file} until its servers change: {described(sources)}.")
    return {source.name for source in sources}


def _ask(what: str) -> None:
    """In a terminal, show what would be trusted, and ask; a script has named the file."""
    if can_ask():
        confirm(safe(f"{what} Trust it?"), yes=False, done="trusted")


@command(config, "untrust", examples=("repertory config untrust .mcp.json",))
def untrust(flags: Flags, files: FilesArgument) -> None:
    """Revoke trust in configurations: servers are not run, and folders not read, any more."""
    settings, directory = here(flags)
    workspace = Workspace(settings, directory)
    others = []
    for file in files:
        path = expanded(file).absolute()
        with audited(settings, directory, "untrust", [path]):
            known = {path, *known_as(file, workspace)}
            was_trusted = [workspace.trust.revoke(one) for one in known]
        if any(was_trusted):
            terminal.show_text(f"{file} is no longer trusted; its indexed items stay.")
        else:
            others.append(str(file))
    if others:
        raise UsageError(f"These were not trusted: {', '.join(others)}.")


def _problems(workspace: Workspace) -> Iterator[str]:
    """The problems of a catalogue's configuration, found without reading its sources."""
    found: set[str] = set()
    for entry in workspace.sources.entries():
        try:
            sources = build(entry, workspace.base)
        except ConfigurationError as error:
            found.add(str(error))
        else:
            yield from (source.fault for source in sources if source.fault)
            if "path" in entry:
                path = source_path(entry, workspace.base)
                if not os.path.exists(path):  # noqa: PTH110 - False also if it cannot be reached
                    yield f"The source of type {entry['type']!r} reads {path}, which is missing."
    try:
        workspace.catalogue()
    except ConfigurationError as error:  # repeats one of these, or concerns all entries
        found = {one for one in found if one not in str(error)} | {str(error)}
    yield from sorted(found)


def _shown(settings: Settings, field: str, *, secret: bool) -> Any:  # noqa: ANN401 - any setting
    if field == "data_dir":
        return str(settings.data_dir)
    if field == "model":
        return settings.values.model or DEFAULT.id
    value = getattr(settings.values, field)
    if field == "redis_url" and value:
        return _without_password(value)
    if secret and value:
        return "****"
    return masked(value) if isinstance(value, str) else value


def _without_secrets(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a source, with passwords in URLs and values of headers and variables hidden."""
    shown = dict(entry)
    for key, value in entry.items():
        if isinstance(value, str):
            shown[key] = masked(value)
        elif isinstance(value, dict):
            shown[key] = dict.fromkeys(value, "****")
    return shown


def _without_password(url: str) -> str:
    """The URL of a Redis without its password; completely hidden if it cannot be parsed."""
    parts = _REDIS.fullmatch(url)
    if parts is None:  # an unescaped character may leave half a password anywhere
        return "****"
    scheme, user, server = parts.groups()
    return url if user is None else f"{scheme}{user}:****@{server}"


def _text(value: Any) -> str:  # noqa: ANN401 - any setting
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _origin_style(origin: str) -> str:
    return "dim" if origin == "default" else "green"
