"""``repertory search`` and ``repertory explain``."""

from typing import Annotated

import typer

from repertory.catalogue.item import Kind
from repertory.formats.rendering import Format, FormatOptions, Rendered, render
from repertory.search.query import query_of
from repertory_admin import completion, terminal
from repertory_admin.app import app, command
from repertory_admin.exits import ExitCode
from repertory_admin.options import (
    ASKING,
    INDEXING,
    RANKING,
    STORE,
    Flags,
    Output,
    OutputOption,
    SearchOutput,
    SearchOutputOption,
)
from repertory_admin.progress import Bars
from repertory_admin.show import answers
from repertory_admin.target import target_of

KindOption = Annotated[
    list[Kind] | None,
    typer.Option(
        "--kind", "-k", metavar="KIND", help="Only this kind: skill, tool or document; repeatable."
    ),
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Only this source; repeatable.", autocompletion=completion.sources
    ),
]
ServerOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Only this server's tools; repeatable.",
        autocompletion=completion.servers,
    ),
]
TagOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TAG", help="Only with this tag; repeatable.", autocompletion=completion.tags
    ),
]


@command(
    app,
    "search",
    settings=(*STORE, *INDEXING, "tools_max_age", *RANKING, *ASKING),
    examples=(
        "repertory search read file contents",
        'repertory search "commit my changes" -k tool -n 5 --explain',
    ),
)
def search(
    flags: Flags,
    query: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY...", help="A task, some words or a name.", show_default=False
        ),
    ],
    kind: KindOption = None,
    source: SourceOption = None,
    server: ServerOption = None,
    tag: TagOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the evidence for each result.")
    ] = False,
    output: SearchOutputOption = SearchOutput.TABLE,
) -> None:
    """Find items for a task, some words or a name.

    The configured or running server of this directory answers. Without one, the index is opened
    here, and new, changed and deleted files are indexed first, for at most a second; a first index
    takes at most half a minute. No MCP server is asked; `repertory index` does that.

    A terminal shows the description and the file of each result. A pipe gets one line for each: id,
    kind if there are several, confidence and reason, at least two spaces apart. Programs should
    read --output json.
    """
    target = target_of(flags)
    asked = query_of(
        target.defaults,
        " ".join(query),
        kinds=kind or (),
        sources=source or (),
        servers=server or (),
        tags=tag or (),
    )
    found: Rendered | None = None
    with Bars() as bars, target.open(bars, embeds=True) as backend:
        answer = backend.search(asked)
        if output is not SearchOutput.TABLE:
            options = FormatOptions(gateway=backend.gateway)
            found = render(Format(output), answer, backend.items, options)
    answers.warn_if_degraded(answer)
    answers.show_notices(answer)
    if isinstance(found, str):
        terminal.say(found.rstrip())
    elif found is not None:
        terminal.show_json(found)
    elif answer.hits:
        answers.show(answer)
        if explain:
            answers.show_evidence(answer, asked)
    else:
        answers.show_nothing(answer, asked)
    if not answer.hits:
        raise typer.Exit(ExitCode.NOT_FOUND)


@command(
    app,
    "explain",
    settings=(*STORE, *INDEXING, "tools_max_age", *RANKING, *ASKING),
    examples=(
        "repertory explain commit my changes git__commit",
        'repertory explain "rotate API keys" team/key-rotation --kind skill --output json',
    ),
)
def explain(
    flags: Flags,
    query: Annotated[
        list[str],
        typer.Argument(metavar="QUERY...", help="The search to explain.", show_default=False),
    ],
    item: Annotated[
        str,
        typer.Argument(
            metavar="ITEM",
            help="The item's id or its unique name.",
            show_default=False,
        ),
    ],
    kind: KindOption = None,
    source: SourceOption = None,
    server: ServerOption = None,
    tag: TagOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Explain why an item is, or is not, in the results.

    It searches like `repertory search`. The exit code is 0 even if the item is not returned.
    """
    target = target_of(flags)
    asked = query_of(
        target.defaults,
        " ".join(query),
        kinds=kind or (),
        sources=source or (),
        servers=server or (),
        tags=tag or (),
    )
    with target.naming_quarantined(item), Bars() as bars, target.open(bars, embeds=True) as backend:
        found = backend.explain(asked, item)
    answers.warn_if_degraded(found)
    answers.show_notices(found)
    if output is Output.JSON:
        terminal.show_json(found)
    else:
        answers.show_explanation(found)
