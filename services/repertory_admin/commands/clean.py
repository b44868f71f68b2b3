"""``repertory clean``."""

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repertory.settings import Settings, load
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.confirmation import confirm
from repertory_admin.options import Flags, Output, OutputOption, YesOption
from repertory_admin.text import short_path

if TYPE_CHECKING:
    from repertory.cleaning import Unused


@command(
    app,
    "clean",
    examples=("repertory clean --dry-run", "repertory clean --yes --output json"),
)
def clean(
    flags: Flags,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show it.")] = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Remove stored data that nothing uses any more.

    It is shown first, with its size: indexes of deleted directories, replaced indexes, optimised
    models without their weights, and files of killed processes. The indexes of existing
    directories stay, and so do keys, trusted configurations and downloaded models.
    """
    from repertory.cleaning import find, remove  # noqa: PLC0415 - imports the engines

    settings = load(flags, Path.cwd())
    data = settings.data_dir
    found = find(data, time.time())
    unused, busy = [[one for one in found if one.is_busy is state] for state in (False, True)]
    if output is Output.TABLE:
        _show(settings, unused)
    removed = []
    if unused and not dry_run:
        confirm(f"Remove {_size(unused)} from {short_path(str(data))}?", yes=yes)
        shown = {one.paths[0] for one in unused}  # data that has come into use since then stays
        unused = [one for one in find(data, time.time()) if one.paths[0] in shown]
        removed = remove(data, unused)
        busy += [one for one in unused if one not in removed]
    if output is Output.JSON:
        terminal.show_json(
            {
                "dataDir": str(data),
                "dryRun": dry_run,
                "unused": [_plain(one) for one in unused],
                "busy": [_plain(one) for one in busy],
                "removedBytes": sum(one.size for one in removed),
            }
        )
        return
    if removed:
        terminal.show_text(f"Removed {_size(removed)}.")
    if busy:
        terminal.note(f"Not removed, because processes use them: {len(busy):,} ({_size(busy)}).")


def _show(settings: Settings, unused: "Sequence[Unused]") -> None:
    data = short_path(str(settings.data_dir))
    kinds = defaultdict(list)
    for one in unused:
        kinds[one.kind].append(one)
    if unused:
        terminal.show_table(
            ("Unused", "Number", "Size"),
            [(kind, f"{len(ones):,}", _size(ones)) for kind, ones in kinds.items()],
            right=("Number", "Size"),
        )
    else:
        terminal.show_text(f"There is nothing to remove in {data}.")
    if settings.values.redis_url or settings.values.qdrant_url:
        terminal.note(
            f"Only {data} on this machine is cleaned; what is on the Qdrant server stays."
        )


def _size(found: "Sequence[Unused]") -> str:
    return terminal.size(sum(one.size for one in found))


def _plain(one: "Unused") -> dict[str, object]:
    return {"kind": one.kind.name.lower(), "path": str(one.paths[0]), "bytes": one.size}
