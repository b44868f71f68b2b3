"""``repertory keys``: the API keys of a server on this machine."""

import time
from pathlib import Path
from typing import Annotated

import typer

from repertory.errors import StoreError
from repertory.keys import Keys, Scope, keys_of
from repertory.remote import running
from repertory.settings import Settings
from repertory.text import ago
from repertory_admin import terminal
from repertory_admin.app import command, group
from repertory_admin.auditing import audited
from repertory_admin.confirmation import confirm
from repertory_admin.options import TEAM, Flags, Output, OutputOption, YesOption
from repertory_admin.target import here
from repertory_admin.text import short_path

keys = group("keys")

# The settings that determine the server that the keys belong to.
SETTINGS = ("keys", *TEAM)

NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The owner or the purpose of the key.", show_default=False),
]


@command(
    keys,
    "create",
    settings=SETTINGS,
    examples=(
        "repertory keys create ci",
        "repertory keys create anna --scope admin",
        "repertory keys create ben --group team-a",
    ),
)
def create(
    flags: Flags,
    name: NameArgument,
    scope: Annotated[
        Scope,
        typer.Option(
            metavar="read|call|admin",
            help="read: search and show; call: also call tools; admin: also rebuild.",
        ),
    ] = Scope.READ,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP",
            help="A group of its owner; sources with `visible_to` are shown to their groups. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a key for the server of this directory, and show it once.

    The server of a directory answers you, and callers with a key. A team's server answers everyone
    until a key exists, and from then on only callers with one. Servers of other directories are not
    affected. To replace a key, create another, distribute it, and revoke the old one.

    A key without groups shows only the sources without `visible_to`; the scope admin shows all.
    """
    settings, directory = here(flags)
    keys, server, is_team = _keys(settings, directory)
    is_first = not keys.required
    groups = list(dict.fromkeys(group or ()))
    with audited(settings, directory, "key-create", [name]):
        token = keys.create(name, scope, groups)
    if output is Output.JSON:
        terminal.show_json(
            {"name": name, "scope": scope, "groups": groups, "key": token, "server": server}
        )
    else:
        terminal.say(token)
        terminal.note(
            "Give it as REPERTORY_SERVER_API_KEY, or in the header `Authorization: Bearer KEY`. "
            "Only a hash of it is stored, so keep it."
        )
    if is_first and is_team:
        terminal.note(
            f"From now on every caller of {server} needs a key, whenever it runs; "
            "`repertory keys reset` undoes that."
        )


@command(keys, "list", settings=SETTINGS, examples=("repertory keys list",))
def list_keys(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """List the names, scopes and groups of the keys of this directory's server."""
    keys, server, is_team = _keys(*here(flags))
    found = keys.list()
    if output is Output.JSON:
        terminal.show_json(
            [
                {"name": key.name, "scope": key.scope, "groups": key.groups, "made": key.made}
                for key in found
            ]
        )
    elif found:
        terminal.show_table(
            ("Key", "Scope", "Groups", "Made"),
            [
                (key.name, key.scope, ", ".join(key.groups), ago(time.time() - key.made))
                for key in found
            ],
            styles={"Key": lambda _: "bold cyan"},
        )
    elif not is_team:
        terminal.show_text(f"There are no keys of {server}, so it answers only you.")
    elif keys.required:
        terminal.show_text(
            f"All keys of {server} are revoked, and every caller needs one: create one, or run "
            "`repertory keys reset` to let callers in without a key."
        )
    else:
        terminal.show_text(f"There are no keys of {server}, so callers need none.")


@command(keys, "revoke", settings=SETTINGS, examples=("repertory keys revoke ci",))
def revoke(flags: Flags, name: NameArgument) -> None:
    """Revoke a key at once, also at a running server.

    After the last one of a team's server is revoked, callers still need a key; see
    `repertory keys reset`.
    """
    settings, directory = here(flags)
    keys, server, is_team = _keys(settings, directory)
    with audited(settings, directory, "key-revoke", [name]):
        is_shared = keys.revoke(name)
    terminal.show_text(f"The key {name!r} is no longer valid for {server}.")
    if is_shared:
        terminal.note(
            "Release 0.1 created this key for the servers of all directories. Servers of other "
            "directories still accept it until you revoke it in each of them."
        )
    if is_team and not keys.list():
        terminal.note(
            f"It was the last key of {server}, which now refuses all callers: create another, or "
            "run `repertory keys reset`."
        )


@command(
    keys,
    "token",
    settings=SETTINGS,
    examples=(
        "repertory keys token",
        'curl -H "Authorization: Bearer $(repertory keys token)" http://127.0.0.1:7700/stats',
    ),
)
def token(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """Print your own token for the running server of this directory, with all scopes.

    Only you can read it, and it is valid until the server ends. Programs that are configured once,
    and other people, need a key; see `repertory keys create`.
    """
    settings, directory = here(flags)
    note = running.note_at(settings, directory)
    if note is None:
        raise StoreError(
            "No server that you started runs for this directory; start `repertory serve`. A team's "
            "server only has keys."
        )
    url = running.sign_in_url(note.url, note.token)
    if output is Output.JSON:
        terminal.show_json({"token": note.token, "server": note.url, "signIn": url})
        return
    terminal.say(note.token)
    if terminal.is_terminal():
        terminal.note(f"Open {url} to sign a browser in.")


@command(
    keys,
    "reset",
    settings=SETTINGS,
    examples=("repertory keys reset", "repertory keys reset --yes"),
)
def reset(
    flags: Flags,
    *,
    yes: YesOption = False,
) -> None:
    """Remove all keys: your server answers only you again, a team's server everyone.

    This needs write access to the data directory. A running server follows at once.
    """
    settings, directory = here(flags)
    keys, server, is_team = _keys(settings, directory)
    after = "callers need none" if is_team else "it answers only you"
    if not keys.required:
        terminal.show_text(f"There are no keys of {server}, so {after}.")
        return
    confirm(f"Remove all keys of {server}, so that {after}?", yes=yes)
    with audited(settings, directory, "key-reset", []):
        keys.reset()
    terminal.show_text(f"All keys of {server} are removed; {after}.")


def _keys(settings: Settings, directory: Path) -> tuple[Keys, str, bool]:
    """The keys, a description of their server, and whether it is a team's server."""
    is_team = bool(settings.values.redis_url)
    return keys_of(settings, directory), _server(settings, directory), is_team


def _server(settings: Settings, directory: Path) -> str:
    if settings.values.keys:
        return f"every server with {short_path(settings.values.keys)}"
    if settings.values.redis_url:
        return "the team's server"
    return f"the server of {directory}"
