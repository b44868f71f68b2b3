"""``repertory index`` and ``repertory rebuild``."""

from pathlib import Path
from typing import Annotated

import typer

from repertory.settings import load
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.exits import ExitCode
from repertory_admin.options import INDEXING, Flags, Output, OutputOption


@command(
    app,
    "index",
    settings=INDEXING,
    examples=("repertory index", "repertory index ~/team-skills ./docs --output json"),
)
def index(
    flags: Flags,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Folders or files to index.", show_default=False)
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make the index equal to the sources.

    Only what changed is embedded. PATHS become this directory's catalogue until the next
    `repertory index`; without any, it is what repertory.toml lists, or else what is found here and
    in the home directory.
    """
    _index(flags, output, paths=paths or [])


@command(app, "rebuild", settings=INDEXING, examples=("repertory rebuild",))
def rebuild(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """Build the index anew, beside the old one.

    The new one is taken when it is whole. A source that is suddenly empty is believed; no text is
    embedded whose vector is known.
    """
    _index(flags, output)


def _index(flags: Flags, output: Output, paths: list[Path] | None = None) -> None:
    """Index these paths; or rebuild, if there is no list of them at all."""
    from repertory.compose import Repertory  # noqa: PLC0415 - --help must be instant
    from repertory_admin import reports  # noqa: PLC0415 - likewise
    from repertory_admin.mcp_trust import untrusted  # noqa: PLC0415 - likewise
    from repertory_admin.progress import Bars  # noqa: PLC0415 - likewise

    directory = Path.cwd()
    with (
        Bars() as bars,
        Repertory(load(flags, directory), directory, download=bars.download) as repertory,
    ):
        if paths is not None:
            repertory.workspace.set_paths(paths)
        report = repertory.rebuild(bars.step) if paths is None else repertory.index(bars.step)
        skipped = untrusted(repertory.workspace)
    if output is Output.JSON:
        terminal.show_json(report)
    else:
        reports.show(report, skipped)
    if (code := reports.exit_code(report, skipped)) is not ExitCode.DONE:
        raise typer.Exit(code)
