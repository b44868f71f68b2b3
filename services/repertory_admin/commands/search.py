"""``repertory search``."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repertory.catalogue.item import Kind
from repertory.settings import Settings, load
from repertory_admin import terminal
from repertory_admin.app import app, command
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

if TYPE_CHECKING:
    from repertory.backend import Backend
    from repertory.one_shot import Repertory
    from repertory.formats.table import Rendered
    from repertory_admin.progress import Bars

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
        list[str], typer.Argument(metavar="QUERY", help="What you look for.", show_default=False)
    ],
    kind: KindOption = None,
    source: SourceOption = None,
    server: ServerOption = None,
    tag: TagOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show why, hit by hit.")] = False,
    output: SearchOutputOption = SearchOutput.TABLE,
) -> None:
    """Find what fits a task, some words or a name.

    A server that is configured, or runs for this directory, is asked. Without one, and where
    nothing is indexed yet, it indexes first.
    """
    from repertory.formats.table import Format, Host, rendered  # noqa: PLC0415 - instant --help
    from repertory.search.query import query_of  # noqa: PLC0415 - likewise
    from repertory_admin import results  # noqa: PLC0415 - likewise
    from repertory_admin.progress import Bars  # noqa: PLC0415 - likewise

    directory = Path.cwd()
    settings = load(flags, directory)
    asked = query_of(
        settings.values,
        " ".join(query),
        kinds=kind or (),
        sources=source or (),
        servers=server or (),
        tags=tag or (),
    )
    found: Rendered | None = None
    with Bars() as bars, backend(settings, directory, bars) as (answering, url):
        answer = answering.search(asked)
        if output is not SearchOutput.TABLE:
            found = rendered(Format(output), answer, answering.items, Host(gateway=url))
    if answer.degraded:
        terminal.warn(f"degraded, answered by {answer.mode} alone: {answer.degraded}")
    if isinstance(found, str):
        terminal.say(found.rstrip())
    elif found is not None:
        terminal.show_json(found)
    elif answer.hits:
        results.show(answer)
        if explain:
            results.show_evidence(answer, asked)
    else:
        results.show_nothing(answer)
    if not answer.hits:
        raise typer.Exit(ExitCode.NOT_FOUND)


@contextmanager
def backend(settings: Settings, directory: Path, bars: "Bars") -> Iterator[tuple["Backend", str]]:
    """What answers, and the URL of the server that calls tools, which may have to be started.

    Without a server, and where nothing is indexed yet, it indexes first.
    """
    from repertory import running  # noqa: PLC0415 - --help must be instant

    if client := running.client(settings, directory):
        yield client, client.url
        return
    from repertory.one_shot import Repertory  # noqa: PLC0415 - not where a server is asked

    with Repertory(settings, directory, download=bars.download) as repertory:
        if not repertory.is_indexed:
            _index_first(repertory, bars)
        yield repertory, running.url_of(settings.values.host, settings.values.port)


def _index_first(repertory: "Repertory", bars: "Bars") -> None:
    from repertory_admin import reports  # noqa: PLC0415 - only once
    from repertory_admin.mcp_trust import advice, untrusted  # noqa: PLC0415 - likewise

    report = repertory.index(bars.step, words_suffice=True)
    terminal.note(reports.headline(report))
    for notice in report.notices:
        terminal.note(notice)
    if count := len(reports.errors(report.problems)):
        terminal.note(f"{count:,} could not be read; `repertory doctor` lists them.")
    if text := advice(untrusted(repertory.workspace)):
        terminal.note(text)
