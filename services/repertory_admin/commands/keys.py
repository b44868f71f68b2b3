"""``repertory keys``: the API keys of a server on this machine."""

import time
from pathlib import Path
from typing import Annotated

import typer

from repertory.errors import UsageError
from repertory.keys import Keys, Scope, keys_of
from repertory.settings import load
from repertory.text import ago
from repertory_admin import terminal
from repertory_admin.app import app, command, group
from repertory_admin.options import Flags, Output, OutputOption

keys = group("keys", "The keys that a server accepts.")
app.add_typer(keys)

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
        str,
        typer.Option(
            metavar="SCOPE",
            help="read: search and show; call: also call tools; admin: also rebuild.",
        ),
    ] = "read",
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a key and show it, only this once.

    Once a key exists, every caller needs one. To replace a key, create another, hand it out, and
    revoke the old one.
    """
    if scope not in [one.value for one in Scope]:
        raise UsageError(f"--scope is {scope!r}; use read, call or admin.")
    token = _keys(flags).create(name, Scope(scope))
    if output is Output.JSON:
        terminal.show_json({"name": name, "scope": scope, "key": token})
        return
    terminal.say(token)
    terminal.note(
        "Give it as REPERTORY_SERVER_API_KEY, or in the header `Authorization: Bearer KEY`. "
        "It is stored nowhere."
    )


@command(keys, "list", settings=("keys",), examples=("repertory keys list",))
def list_keys(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """List the keys by name and scope; the keys themselves are not stored."""
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
        terminal.say("There are no keys any more, and none but a key is let in: make one.")
    else:
        terminal.say("There are no keys.")


@command(keys, "revoke", settings=("keys",), examples=("repertory keys revoke ci",))
def revoke(flags: Flags, name: NameArgument) -> None:
    """Revoke a key at once, also for a running server."""
    _keys(flags).revoke(name)
    terminal.tell(f"The key {name!r} is not valid any more.")


def _keys(flags: Flags) -> Keys:
    return keys_of(load(flags, Path.cwd()))
