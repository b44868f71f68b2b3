"""``repertory connect``: the entry of Repertory in the configurations of agent hosts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from repertory.agent_hosts import plan, writing
from repertory.agent_hosts.document import written
from repertory.agent_hosts.host import Machine, Scope, this_machine
from repertory.agent_hosts.our_entry import (
    VARIABLE,
    OurServer,
    endpoint,
    entry_for,
    read_key,
    words_of,
)
from repertory.agent_hosts.plan import Plan, State, Target, state_of, target_for
from repertory.agent_hosts.records import Records
from repertory.agent_hosts.table import HOSTS, host_named
from repertory.errors import UsageError
from repertory.project.root import located
from repertory.project.workspace import Workspace
from repertory.settings import Settings
from repertory.sources.registry import digest_to_trust
from repertory.trust import TrustStore
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.confirmation import confirm
from repertory_admin.exits import ExitCode
from repertory_admin.options import Flags, Output, OutputOption, YesOption
from repertory_admin.show import hosts as show
from repertory_admin.text import short_path


@command(
    app,
    "connect",
    examples=(
        "repertory connect",
        "repertory connect claude-code",
        "repertory connect cursor --project --yes",
        "repertory connect codex --url https://repertory.example.com --key-file key.txt",
        "repertory connect zed --print",
        "repertory connect goose --undo",
    ),
)
def connect(  # noqa: PLR0913 - one for each option
    flags: Flags,
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help="The host: claude-code, claude-desktop, cursor, vscode, windsurf, codex, gemini, "
            "zed, opencode or goose  [default: show all that are installed]",
            show_default=False,
            autocompletion=lambda: [host.id for host in HOSTS],
        ),
    ] = "",
    *,
    project: Annotated[
        bool,
        typer.Option("--project", help="Write the project's configuration instead of your own."),
    ] = False,
    url: Annotated[
        str, typer.Option(metavar="URL", help="Connect to a team's server.", show_default=False)
    ] = "",
    key: Annotated[
        str,
        typer.Option(metavar="KEY", help=f"The key for it  [env: {VARIABLE}]", show_default=False),
    ] = "",
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="FILE", help="A file with the key.", show_default=False),
    ] = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the entry, and write nothing.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Restore the previous configuration.")
    ] = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Connect an agent host, such as Claude Code, to Repertory.

    It shows how the host's configuration would change, asks, and writes the entry. Nothing else in
    the file changes, and a backup is kept beside it. Without a host, it shows the hosts that are
    installed, and whether they are connected. A key is written only if the host cannot read it
    from the environment.
    """
    settings, found = located(flags, Path.cwd())
    machine = this_machine(found.directory)
    server = _server(settings, url, key, key_file)
    scope = Scope.PROJECT if project else Scope.USER
    if not host:
        if only_print or undo or project:
            raise UsageError("Name the host, such as `repertory connect claude-code`.")
        _list(machine, server, output)
        return
    target = _target(host, scope, machine)
    wanted = entry_for(target.host, scope, machine, server)
    if only_print:
        terminal.say(written(target.host.syntax, target.host.keys, wanted).rstrip("\n"))
        return
    records = Records(settings.data_dir)
    change = plan.undoing(target, records) if undo else plan.connecting(target, wanted, records)
    trust = Workspace(settings, found.directory).trust
    _carry_out(change, records, trust, server, undo=undo, yes=yes, output=output)


def _server(settings: Settings, url: str, key: str, key_file: Path | None) -> OurServer:
    """The server that the host is to be connected to.

    Raises:
        UsageError: An option is invalid.
    """
    words = words_of(settings)
    if not url:
        if key or key_file:
            raise UsageError("--key and --key-file need --url, which is missing.")
        return OurServer(words)
    if key and key_file:
        raise UsageError("Give either --key or --key-file.")
    if key_file:
        key = read_key(key_file)
    url, values = endpoint(url), settings.values
    if key or not values.server_api_key:
        return OurServer(words, url, key)
    if settings.origins["server_api_key"] == VARIABLE:
        return OurServer(words, url, values.server_api_key)
    is_for_it = values.server_url is not None and endpoint(values.server_url) == url
    return OurServer(words, url, values.server_api_key if is_for_it else "", is_stored=True)


def _target(name: str, scope: Scope, machine: Machine) -> Target:
    """The configuration of a host.

    Raises:
        UsageError: There is no such host, or it has no project configuration.
    """
    host = host_named(name)
    target = target_for(host, scope, machine)
    if target is None:
        raise UsageError(f"{host.title} has no project configuration; leave out --project.")
    return target


def _list(machine: Machine, server: OurServer, output: Output) -> None:
    """Show every host that is installed, or whose configuration is connected."""
    rows: list[dict[str, Any]] = []
    for host in HOSTS:
        own = target_for(host, Scope.USER, machine)
        for scope in host.places:
            target = target_for(host, scope, machine)
            # In the home directory, a project's file may be the user's own.
            if target is None or (scope is Scope.PROJECT and own and own.file == target.file):
                continue
            state, detail = state_of(target, entry_for(host, scope, machine, server))
            row = show.row(target, state, detail)
            is_there = host.is_installed(machine) if scope is Scope.USER else row["exists"]
            if is_there or state is not State.MISSING:
                rows.append(row)
    if output is Output.JSON:
        terminal.show_json(rows)
    elif rows:
        show.table(rows)
        terminal.note("`repertory connect HOST` connects one, `--undo` disconnects it.")
    else:
        names = ", ".join(host.title for host in HOSTS)
        terminal.show_text(f"No agent host was found. These can be connected: {names}.")
    if not rows:
        raise typer.Exit(ExitCode.NOT_FOUND)


def _carry_out(
    change: Plan,
    records: Records,
    trust: TrustStore,
    server: OurServer,
    *,
    undo: bool,
    yes: bool,
    output: Output,
) -> None:
    target = change.target
    is_table = output is Output.TABLE
    backup = None
    if change.changes:
        show.difference(change, to_stderr=not is_table)
        what = "Remove the entry from" if undo else "Write this to"
        file = short_path(str(target.file))
        confirm(f"{what} {file}?", yes=yes, done="written")
        was_trusted = change.current is not None and trust.covers(
            target.file, change.current, digest_to_trust
        )
        if undo:
            writing.undo(change, records)
        else:
            backup = writing.connect(change, records)
        if was_trusted and change.after is not None:  # only our entry has changed
            digest = digest_to_trust(target.file, change.after)
            trust.trust(target.file, digest, of=digest_to_trust)
    if is_table:
        show.outcome(change, backup, server, undo=undo)
        return
    terminal.show_json(
        {
            **show.row(target, State.MISSING if undo else State.CONNECTED, ""),
            "changed": change.changes,
            "backup": str(backup) if backup else None,
            "notes": show.notes(change, server, undo=undo),
        }
    )
