"""``repertory add`` and ``repertory remove``."""

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from repertory.data_directory import FETCHED
from repertory.errors import SourceError, UsageError
from repertory.project.configuration_file import becomes_trusted, project_file, read, rewrite
from repertory.project.trust_requests import described
from repertory.project.workspace import Workspace
from repertory.settings import Settings, files
from repertory.sources.adding import Address, recognise
from repertory.sources.fetched.urls import masked
from repertory.sources.fetched.users import used
from repertory.text import counted
from repertory_admin import source_entries, terminal
from repertory_admin.app import app, command
from repertory_admin.confirmation import confirm
from repertory_admin.fetched_sources import Fetched, discard, fetched
from repertory_admin.options import ASKING, INDEXING, STORE, Flags, YesOption
from repertory_admin.registry_search import FindOption, show_servers
from repertory_admin.target import here, target
from repertory_admin.text import short_path

MAX_SHOWN = 5  # problems

UserOption = Annotated[
    bool, typer.Option("--user", help="In your own config.toml, for all your projects.")
]


@command(
    app,
    "add",
    settings=(*STORE, *INDEXING, *ASKING, "registry"),
    examples=(
        "repertory add https://github.com/acme/skills --ref main --folder skills",
        "repertory add acme/plugins --name acme",
        "repertory add https://example.com/skills.tar.gz --sha256 DIGEST --dry-run",
        "repertory add https://api.example.com/openapi.json --name tracker",
        "repertory add --find 'github issues'",
        "repertory add mcp-registry:io.github.acme/tracker@1.2.0",
    ),
)
def add(  # noqa: PLR0913 - its options
    flags: Flags,
    address: Annotated[str, typer.Argument(metavar="URL", help="A URL, or a path.")],
    *,
    ref: Annotated[
        str | None, typer.Option(metavar="REF", help="A branch, a tag or a commit.")
    ] = None,
    folder: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Read only this folder of it.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The name of the source, and the prefix of its ids."),
    ] = None,
    sha256: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="The expected digest of an archive.")
    ] = None,
    find: FindOption = False,
    user: UserOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show it.")] = False,
    yes: YesOption = False,
) -> None:
    """Add a repository, marketplace, archive, web API or server of an MCP registry.

    It is fetched and read first, and you see what was found before it is written to the
    project's repertory.toml. Adding is not trusting: MCP servers in it do not run until you trust
    them. While a server runs, it is fetched again every hour; `repertory index` fetches it, too.
    """
    settings, directory = here(flags)
    registry = settings.values.registry
    if find:
        show_servers(registry, address)
        return
    file = _file(settings, directory, flags, user=user)
    workspace = Workspace(settings, directory)
    if workspace.paths():
        raise UsageError(
            "The sources of this directory are the paths that `repertory index` was given; run "
            "`repertory index` without a path first."
        )
    options = {"ref": ref, "folder": folder, "sha256": sha256}
    given = {key: value for key, value in options.items() if value is not None}
    recognised = recognise(Address(address, Path.cwd(), given, registry))
    if ignored := given.keys() - recognised.entry.keys():
        raise UsageError(f"--{min(ignored)} does not apply to {recognised.title}.")
    store = settings.data_dir / FETCHED
    kept = used(store)
    found = fetched(recognised, workspace, store, name)
    is_written = is_read = False
    try:
        entry = _written(found.recognised.entry, file)
        _show(found, entry, file)
        if not dry_run:
            _say_trust(file, settings, directory)
            confirm("Add it?", yes=yes, done="added")
            text = source_entries.with_entry(read(file), entry)
            is_read = _write(file, text, settings, directory)
            is_written = True
    finally:
        if not is_written:
            discard(found.sources, kept | used(store))  # others may have added it meanwhile
    if is_read:
        _index(flags, {source.name for source in found.sources})


@command(app, "remove", examples=("repertory remove acme-skills", "repertory remove acme --user"))
def remove(
    flags: Flags,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the source.")],
    *,
    user: UserOption = False,
    yes: YesOption = False,
) -> None:
    """Remove a source from the configuration.

    The next search removes its items from the index. `repertory clean` removes fetched files.
    """
    settings, directory = here(flags)
    file = _file(settings, directory, flags, user=user)
    names = source_entries.names_in(read(file))
    if name not in names:
        known = f"it has {', '.join(names)}" if names else "it has none"
        raise UsageError(f"{short_path(str(file))} has no source {name!r}; {known}.")
    confirm(f"Remove {name} from {short_path(str(file))}?", yes=yes)
    # Read again: the user may have changed it while the question was open.
    text = source_entries.without_entry(read(file), name)
    _write(file, text, settings, directory)
    Workspace(*here(flags)).catalogue()  # records which fetched content is still used
    terminal.show_text(f"Removed {name}; its items leave the index with the next search.")


def _file(settings: Settings, directory: Path, flags: Flags, *, user: bool) -> Path:
    """The configuration file to change.

    Raises:
        UsageError: The sources are configured on another machine.
    """
    if settings.values.server_url:
        raise UsageError(
            f"The sources of the server at {settings.values.server_url} are configured there."
        )
    if user:
        return files(flags, directory, settings.environment)[0]
    return project_file(settings, directory)


def _show(found: Fetched, entry: Mapping[str, Any], file: Path) -> None:
    """Show what was found, and what will be written."""
    kinds: Counter[str] = Counter()
    problems: list[str] = []
    for source in found.sources:
        try:
            scan = source.scan()
        except SourceError as error:
            problems.append(str(error))
            continue
        kinds.update(item.kind.value for item in scan.items)
        problems += map(str, scan.problems)
    counts = ", ".join(counted(number, kind) for kind, number in kinds.items())
    terminal.show_text(
        f"{found.sources[0].location} is {found.recognised.title} with {counts or 'no items'}."
    )
    for note in found.recognised.notes:
        terminal.show_text(note)
    if found.servers:
        number = counted(len(found.servers), "MCP server")
        terminal.show_text(
            f"{number} in it will not run until you trust it: {described(found.servers)}."
        )
    for problem in problems[:MAX_SHOWN]:
        terminal.warn(problem)
    if len(problems) > MAX_SHOWN:
        terminal.warn(f"{len(problems) - MAX_SHOWN} more problems; `repertory stats` lists them.")
    terminal.say(f"\nIn {short_path(str(file))}:\n\n[[sources]]")
    for key, value in entry.items():
        terminal.say(f"{key} = {masked(msgspec.json.encode(value).decode())}")
    terminal.say()


def _written(entry: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The entry as it is written; a path below its file's folder is relative."""
    path = Path(str(entry.get("path", "")))
    if path.is_absolute() and path.is_relative_to(file.parent.resolve()):
        return {**entry, "path": path.relative_to(file.parent.resolve()).as_posix()}
    return dict(entry)


def _say_trust(file: Path, settings: Settings, directory: Path) -> None:
    """If a file is not trusted yet, say that adding to it means to trust all of it."""
    if becomes_trusted(file, settings, directory):
        terminal.show_text(
            f"{short_path(str(file))} is not trusted yet. If you add this, you trust the whole "
            "file: its sources may then follow links out of its folder."
        )


def _write(file: Path, text: str, settings: Settings, directory: Path) -> bool:
    """Replace the configuration file, and return whether it may do all that it asks for.

    A trusted file stays trusted.
    """
    is_free = rewrite(file, text, settings, directory, by_user=True)
    shown = short_path(str(file))
    terminal.show_text(f"Wrote {shown}.")
    if not is_free:
        terminal.warn(
            f"{shown} is not trusted and asks for more than its own folder, so nothing in it is "
            f"fetched until you run `repertory config trust {shlex.quote(shown)}`."
        )
    return is_free


def _index(flags: Flags, names: set[str]) -> None:
    """Index the fetched sources with these names, unless a server does so itself."""
    settings, directory = here(flags)
    if settings.values.redis_url:
        terminal.show_text("The watch service of this directory will index it within seconds.")
        return
    found = target(settings, directory)
    if found.server:
        terminal.show_text(f"The server at {found.server.remote.url} is indexing it now.")
        return
    run = found.index_here()
    terminal.show_text("It is indexed; you can search it now.")
    if withheld := sum(one.quarantined for one in run.stats.sources if one.name in names):
        number = counted(withheld, "suspicious item")
        terminal.show_text(
            f"{number} in it will wait for your approval; run `repertory trust review`."
        )
