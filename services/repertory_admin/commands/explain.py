"""``repertory explain``."""

from typing import Annotated

import typer

from repertory.search.query import query_of
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.backend import target_of
from repertory_admin.commands.search import (
    KindOption,
    ServerOption,
    SourceOption,
    TagOption,
)
from repertory_admin.options import (
    ASKING,
    INDEXING,
    RANKING,
    STORE,
    Flags,
    Output,
    OutputOption,
)
from repertory_admin.progress import Bars
from repertory_admin.show import answers


@command(
    app,
    "explain",
    settings=(*STORE, *INDEXING, *RANKING, *ASKING),
    examples=(
        "repertory explain commit my changes git__commit",
        'repertory explain "rotate API keys" team/key-rotation --kind skill --output json',
    ),
)
def explain(
    flags: Flags,
    query: Annotated[
        list[str],
        typer.Argument(metavar="QUERY", help="The search to explain.", show_default=False),
    ],
    item: Annotated[
        str,
        typer.Argument(
            metavar="ITEM", help="The item's id, or a name that no other has.", show_default=False
        ),
    ],
    kind: KindOption = None,
    source: SourceOption = None,
    server: ServerOption = None,
    tag: TagOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Explain why a search returns an item, or why not.

    The query is searched as by `repertory search`. The exit code is 0 whatever the answer is.
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
    with Bars() as bars, target.open_indexed(bars) as backend:
        found = backend.explain(asked, item)
    if found.degraded:
        terminal.warn(f"degraded, answered by {found.mode} alone: {found.degraded}")
    if output is Output.JSON:
        terminal.show_json(found)
    else:
        answers.show_explanation(found)
