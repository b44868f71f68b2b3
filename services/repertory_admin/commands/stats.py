"""``repertory stats``."""

from repertory.system.files import size_on_disk
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.logs import is_verbose
from repertory_admin.options import ASKING, STORE, Flags, Output, OutputOption
from repertory_admin.show import statistics
from repertory_admin.target import Target, target_of
from repertory_admin.text import short_path


@command(
    app,
    "stats",
    settings=(*STORE, *ASKING),
    examples=("repertory stats", "repertory stats --output json"),
)
def stats(flags: Flags, output: OutputOption = Output.TABLE) -> None:
    """Show the index, its freshness and its problems.

    The configured or running server of this directory answers, else the index here. With
    --verbose, the names and numbers of the stored index are shown, too.
    """
    target = target_of(flags)
    with target.open() as backend:
        found = backend.stats()
    if output is Output.JSON:
        terminal.show_json(found)
    else:
        statistics.show(found, _place(target), internals=is_verbose())


def _place(target: Target) -> dict[str, str]:
    if target.server:
        return {"server": target.server.remote.url}
    data = target.settings.data_dir
    return {"data": f"{short_path(str(data))}, {terminal.size(size_on_disk(data))}"}
