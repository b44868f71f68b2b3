"""``repertory keys``: the API keys of a server on this machine."""

import time
from pathlib import Path
from typing import Annotated

import typer

from repertory.keys import Keys, Scope, keys_of
from repertory.settings import load
from repertory.text import ago
from repertory_admin import terminal
from repertory_admin.app import command, group
from repertory_admin.options import Flags, Output, OutputOption

keys = group("keys")

NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The owner or the purpose of the key.", show_default=False),
]


@command(
    keys,
    "create",
    settings=("keys",),
    examples=("repertory keys create ci", "repertory keys create anna --scope admin"),
)
def create(
    flags: Flags,
    name: NameArgument,
    scope: Annotated[
        Scope,
        typer.Option(
            help="read: search and show; call: also call tools; admin: also rebuild.",
        ),
    ] = Scope.READ,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a key and show it once.

    Once a key exists, every caller needs one. To replace a key, create another, distribute it, and
    revoke the old one.
    """
    token = _keys(flags).create(name, scope)
    if output is Output.JSON:
        terminal.show_json({"name": name, "scope": scope, "key": token})
        return
    terminal.say(token)
    terminal.note(
        "Give it as REPERTORY_SERVER_API_KEY, or in the header `Authorization: Bearer KEY`. "
        "It is not stored, so keep it."
    )


@command(keys, "list", settings=("keys",), examples=("repertory keys list",))
def list_keys(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """List the names and scopes of the keys."""
    keys = _keys(flags)
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
        terminal.say("All keys are revoked, and every caller needs one: create one.")
    else:
        terminal.say("There are no keys.")


@command(keys, "revoke", settings=("keys",), examples=("repertory keys revoke ci",))
def revoke(flags: Flags, name: NameArgument) -> None:
    """Revoke a key at once, also for a running server."""
    _keys(flags).revoke(name)
    terminal.tell(f"The key {name!r} is no longer valid.")


def _keys(flags: Flags) -> Keys:
    return keys_of(load(flags, Path.cwd()))
