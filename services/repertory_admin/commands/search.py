"""``repertory search``."""

from typing import Annotated

import typer

from repertory.catalogue.item import Kind
from repertory.formats.table import Format, Host, Rendered, render
from repertory.search.query import query_of
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.backend import target_of
from repertory_admin.exits import ExitCode
from repertory_admin.options import (
    ASKING,
    INDEXING,
    RANKING,
    STORE,
    Flags,
    SearchOutput,
    SearchOutputOption,
)
from repertory_admin.progress import Bars
from repertory_admin.show import answers

KindOption = Annotated[
    list[Kind] | None,
    typer.Option(metavar="KIND", help="Only skill, tool or document; repeatable."),
]
SourceOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only this source; repeatable.")
]
ServerOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only this server; repeatable.")
]
TagOption = Annotated[
    list[str] | None, typer.Option(metavar="TAG", help="Only with this tag; repeatable.")
]


@command(
    app,
    "search",
    settings=(*STORE, *INDEXING, *RANKING, *ASKING),
    examples=(
        "repertory search read file contents",
        'repertory search "commit my changes" --kind tool --limit 5 --explain',
    ),
)
def search(
    flags: Flags,
    query: Annotated[
        list[str],
        typer.Argument(metavar="QUERY", help="A task, some words or a name.", show_default=False),
    ],
    kind: KindOption = None,
    source: SourceOption = None,
    server: ServerOption = None,
    tag: TagOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the evidence for each hit.")
    ] = False,
    output: SearchOutputOption = SearchOutput.TABLE,
) -> None:
    """Find what fits a task, some words or a name.

    It asks the server that is configured or runs for this directory. Without one, it opens the
    index here, and indexes first if nothing is indexed yet.
    """
    target = target_of(flags)
    asked = query_of(
        target.settings.values,
        " ".join(query),
        kinds=kind or (),
        sources=source or (),
        servers=server or (),
        tags=tag or (),
    )
    found: Rendered | None = None
    with Bars() as bars, target.open_indexed(bars) as backend:
        answer = backend.search(asked)
        if output is not SearchOutput.TABLE:
            host = Host(gateway=backend.gateway)
            found = render(Format(output), answer, backend.items, host)
    if answer.degraded:
        terminal.warn(f"degraded, answered by {answer.mode} alone: {answer.degraded}")
    if isinstance(found, str):
        terminal.say(found.rstrip())
    elif found is not None:
        terminal.show_json(found)
    elif answer.hits:
        answers.show(answer)
        if explain:
            answers.show_evidence(answer, asked)
    else:
        answers.show_nothing(answer)
    if not answer.hits:
        raise typer.Exit(ExitCode.NOT_FOUND)
