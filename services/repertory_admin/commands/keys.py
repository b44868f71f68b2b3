"""``repertory keys``: the API keys of a server on this machine."""

import time
from pathlib import Path
from typing import Annotated

import typer

from repertory.keys import Keys, Scope, keys_of
from repertory.settings import Settings
from repertory.text import ago
from repertory_admin import terminal
from repertory_admin.app import command, group
from repertory_admin.asking import confirm
from repertory_admin.backend import here
from repertory_admin.options import TEAM, Flags, Output, OutputOption, YesOption

keys = group("keys")

# Which server the keys are of follows from these.
SETTINGS = ("keys", *TEAM)

NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The owner or the purpose of the key.", show_default=False),
]


@command(
    keys,
    "create",
    settings=SETTINGS,
    examples=("repertory keys create ci", "repertory keys create anna --scope admin"),
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
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a key for the server of this directory, and show it once.

    Once a key exists, every caller of that server needs one, also after its next start. Servers of
    other directories are not affected. To replace a key, create another, distribute it, and revoke
    the old one.
    """
    keys, server = _keys(flags)
    is_first = not keys.required
    token = keys.create(name, scope)
    if output is Output.JSON:
        terminal.show_json({"name": name, "scope": scope, "key": token, "server": server})
        return
    terminal.say(token)
    terminal.note(
        "Give it as REPERTORY_SERVER_API_KEY, or in the header `Authorization: Bearer KEY`. "
        "Only a hash of it is stored, so keep it."
    )
    if is_first:
        terminal.note(
            f"From now on every caller of {server} needs a key, whenever it runs; "
            "`repertory keys reset` undoes that."
        )


@command(keys, "list", settings=SETTINGS, examples=("repertory keys list",))
def list_keys(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """List the names and scopes of the keys of this directory's server."""
    keys, server = _keys(flags)
    found = keys.list()
    if output is Output.JSON:
        terminal.show_json(
            [{"name": key.name, "scope": key.scope, "made": key.made} for key in found]
        )
    elif found:
        terminal.show_table(
            ("Key", "Scope", "Made"),
            [(key.name, key.scope, ago(time.time() - key.made)) for key in found],
            styles={"Key": lambda _: "bold cyan"},
        )
    elif keys.required:
        terminal.tell(
            f"All keys of {server} are revoked, and every caller needs one: create one, or "
            "`repertory keys reset` lets callers in without."
        )
    else:
        terminal.tell(f"There are no keys of {server}, so callers need none.")


@command(keys, "revoke", settings=SETTINGS, examples=("repertory keys revoke ci",))
def revoke(flags: Flags, name: NameArgument) -> None:
    """Revoke a key at once, also at a running server.

    After the last one is revoked, callers still need a key; see `repertory keys reset`.
    """
    keys, server = _keys(flags)
    keys.revoke(name)
    terminal.tell(f"The key {name!r} is no longer valid.")
    if not keys.list():
        terminal.note(
            f"It was the last one of {server}, which now refuses all callers: create another, or "
            "`repertory keys reset`."
        )


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
    """Remove all keys of this directory's server: callers need none any more.

    This takes the right to write the data directory. A running server follows at once.
    """
    keys, server = _keys(flags)
    if not keys.required:
        terminal.tell(f"There are no keys of {server}, so callers need none.")
        return
    confirm(f"Remove all keys of {server}, so that callers need none?", yes=yes)
    keys.reset()
    terminal.tell(f"All keys of {server} are removed; callers need none.")


def _keys(flags: Flags) -> tuple[Keys, str]:
    """The keys, and in words whose they are."""
    settings, directory = here(flags)
    return keys_of(settings, directory), _server(settings, directory)


def _server(settings: Settings, directory: Path) -> str:
    if settings.values.keys:
        return f"every server with {terminal.short_path(settings.values.keys)}"
    if settings.values.redis_url:
        return "the team's server"
    return f"the server of {directory}"
