"""``repertory init``."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from repertory.errors import ConfigurationError, UsageError
from repertory.project.configuration_file import check_place, write
from repertory.project.root import Marker, located
from repertory.project.trust_requests import described, env_files
from repertory.project.workspace import Workspace
from repertory.settings import PROJECT_FILE, Settings, load
from repertory.sources.discover import discover
from repertory.sources.registry import build, digest_to_trust, files_to_trust
from repertory.system.paths import expanded, real_path
from repertory.text import counted
from repertory.trust import digest_now, digest_of
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.auditing import audited
from repertory_admin.options import Flags
from repertory_admin.template import configuration
from repertory_admin.text import short_path


@command(
    app,
    "init",
    examples=("repertory init", "repertory init ~/project --trust --force"),
)
def init(
    flags: Flags,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER", help="The project's folder  [default: this one]", show_default=False
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite the file if it exists.")
    ] = False,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Allow the MCP servers that are found to be run."),
    ] = False,
) -> None:
    """Write a repertory.toml with the sources that are found.

    It looks in the folder and in the home directory. If a repertory.toml of a parent folder applies
    already, name the folder.
    """
    folder = Path(real_path(expanded(path or Path())))
    if not os.path.isdir(folder):  # noqa: PTH112 - False also if a link may not be followed
        raise UsageError(f"There is no folder {folder}; name the one that holds the project.")
    file = folder / PROJECT_FILE
    check_place(file)
    if file.exists() and not force:
        raise UsageError(f"{file} exists already; --force overwrites it.")
    if path is None and not file.exists():
        _check_above(flags, folder)
    entries = discover(folder, Path.home(), os.environ).entries
    text = configuration(entries, folder, Path.home())
    data = write(file, text)
    sources = counted(len(entries), "source")
    terminal.say(f"Wrote {short_path(str(file))} with {sources}.")
    settings = load({**flags, "config": str(file)}, folder)
    workspace = Workspace(settings, folder)
    workspace.trust.trust(file, digest_of(data))  # also for its sources in the home directory
    _settle_trust(settings, workspace, entries, trust=trust)
    terminal.say('Next: `repertory index`, then `repertory search "what you are looking for"`.')


def _check_above(flags: Flags, folder: Path) -> None:
    """Refuse to replace the configuration file of a parent folder, which applies to this folder.

    Raises:
        UsageError: There is such a file.
    """
    _, project = located(flags, folder)
    if project.marker is Marker.FILE:
        raise UsageError(
            f"{project.directory / PROJECT_FILE} applies here already; to give this folder a file "
            "of its own, name it: `repertory init .`."
        )


def _settle_trust(
    settings: Settings, workspace: Workspace, entries: list[dict[str, Any]], *, trust: bool
) -> None:
    """Trust each file that the user allows to define sources; report the others."""
    can_ask = sys.stdin.isatty() and sys.stdout.isatty()
    for entry in entries:
        files = files_to_trust(entry, workspace.base) or []
        if all(workspace.trust.is_trusted(file, digest_to_trust) for file in files):
            continue
        try:
            digests = {file: digest_now(file, digest_to_trust) for file in files}
            sources = build(entry, workspace.base)
        except (ConfigurationError, UsageError) as error:
            terminal.warn(f"{error} Its servers are left out until it can be read.")
            continue
        if not sources:
            continue
        shown = shlex.join(short_path(str(file)) for file in files)
        terminal.show_text(f"{shown} has MCP servers: {described(sources)}.")
        if trust or (can_ask and typer.confirm("May they be run to list their tools?")):
            for file, digest in digests.items():
                with audited(settings, workspace.base, "trust", [file]):
                    workspace.trust.trust(file, digest, env_files(sources), digest_to_trust)
            terminal.say(f"Trusted {shown} until its servers change.")
        else:
            terminal.say(f"Not trusted; `repertory config trust {shown}` lets them be run.")
