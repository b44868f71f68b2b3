"""``repertory types``: the TypeScript module of tools."""

from typing import Annotated

import typer

from repertory.index.vectors import Filter
from repertory.text import listed
from repertory_admin import completion, terminal
from repertory_admin.app import app, command
from repertory_admin.options import ASKING, INDEXING, STORE, Flags
from repertory_admin.progress import Bars
from repertory_admin.target import target_of


@command(
    app,
    "types",
    settings=(*STORE, *INDEXING, *ASKING),
    examples=(
        "repertory types > tools.ts",
        "repertory types github notes__add_note",
        'repertory search "write a note" --output types',
    ),
)
def types(
    flags: Flags,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Servers, for all their tools, and ids of tools; all tools if omitted.",
            show_default=False,
            autocompletion=completion.tools,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--filter", metavar="NAME", help="Like NAME; separate several by commas."),
    ] = None,
) -> None:
    """Print a TypeScript module of tools.

    It has the types of each tool's arguments and result, and methods that call the tools through a
    server that allows calls. A server offers the same module at /runtime/tools.ts.
    """
    from repertory.typescript.module import module  # noqa: PLC0415 - no other command needs it
    from repertory.typescript.selection import (  # noqa: PLC0415 - as above
        names_in,
        select_tools,
    )

    given = [*(names or ()), *(only or ())]
    target, wanted = target_of(flags), listed(",".join(given))
    with target.naming_quarantined(*wanted), Bars() as bars, target.open(bars) as backend:
        entries = backend.entries(Filter(kinds=("tool",)))
        ids = select_tools(entries, names_in(entries, given))
        made = module(list(backend.items(ids).values()), backend.gateway)
    terminal.say(made.text.rstrip())
