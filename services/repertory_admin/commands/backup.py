"""``repertory backup`` and ``repertory restore``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repertory.project.root import located
from repertory.system.paths import expanded
from repertory.text import counted
from repertory_admin import terminal
from repertory_admin.app import app, command
from repertory_admin.auditing import audited
from repertory_admin.confirmation import confirm
from repertory_admin.options import STORE, TEAM, Flags, Output, OutputOption, YesOption
from repertory_admin.progress import Bars
from repertory_admin.text import short_path

if TYPE_CHECKING:
    from repertory.backup.archive import Manifest

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]


@command(
    app,
    "backup",
    settings=(*STORE, *TEAM),
    examples=(
        "repertory backup ~/backups/repertory.zip",
        "repertory backup new.zip --redis-url redis://localhost --qdrant-url http://localhost:6333",
    ),
)
def backup(
    flags: Flags,
    file: FileArgument,
    *,
    with_sign_ins: Annotated[
        bool,
        typer.Option("--with-sign-ins", help="Also back up the tokens of `repertory login`."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Write a backup: all indexes, keys and approvals, without recorded usage.

    It holds all indexes of the data directory, or of a team, with their vectors, and people's
    decisions: keys, approvals, trusted configurations. Servers may run meanwhile. Only you can read
    the file, since it contains everything that is indexed.
    """
    from repertory.backup.create import create  # noqa: PLC0415 - imports the engines
    from repertory.compose import Parts  # noqa: PLC0415 - as above

    settings, project = located(flags, Path.cwd())
    path = expanded(file).absolute()
    with audited(settings, project.directory, "backup", [path]), Bars() as bars:
        parts = Parts(settings, project.directory)
        made, left_out = create(parts, path, bars.step, with_sign_ins=with_sign_ins, force=force)
    size = path.stat().st_size
    for warning in left_out:
        terminal.warn(warning)
    if output is Output.JSON:
        terminal.show_json({"file": str(path), "bytes": size, **_plain(made), "leftOut": left_out})
        return
    _show(made)
    terminal.show_text(f"Wrote {short_path(str(path))}: {terminal.size(size)}.")


@command(
    app,
    "restore",
    settings=(*STORE, *TEAM),
    examples=(
        "repertory restore ~/backups/repertory.zip",
        "repertory restore repertory.zip --force --yes",
    ),
)
def restore(
    flags: Flags,
    file: FileArgument,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing index.")] = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Restore the indexes of a backup, without embedding anything.

    The whole file is verified before anything is changed. Stop the server, or a team's
    `repertory watch`, first. Restore only your own backups: their keys and trusted configurations
    are valid from then on.
    """
    from repertory.backup import restore as restoring  # noqa: PLC0415 - imports the engines
    from repertory.backup.archive import Archive  # noqa: PLC0415 - rarely needed
    from repertory.compose import Parts  # noqa: PLC0415 - imports the engines

    settings, project = located(flags, Path.cwd())
    path = expanded(file).absolute()
    where = short_path(str(settings.data_dir))
    with Archive(path) as archive, Bars() as bars:
        parts = Parts(settings, project.directory)
        restoring.check(parts, archive, bars.step, force=force)
        bars.clear()
        if output is Output.TABLE:
            _show(archive.manifest)
        confirm(f"Restore this to {where}?", yes=yes, done="restored")
        with audited(settings, project.directory, "restore", [path]):
            restoring.restore(parts, archive, bars.step)
    if output is Output.JSON:
        terminal.show_json({"dataDir": str(settings.data_dir), **_plain(archive.manifest)})
    else:
        terminal.show_text(f"Restored {terminal.size(archive.manifest.size)}.")


def _show(manifest: "Manifest") -> None:
    rows = [
        (kind, counted(count, "file") if is_files else f"{count:,}", terminal.size(size))
        for (kind, is_files), (count, size) in _contents(manifest).items()
    ]
    terminal.show_table(("Content", "Number", "Size"), rows, right=("Number", "Size"))


def _plain(manifest: "Manifest") -> dict[str, object]:
    return {
        "version": manifest.version,
        "made": manifest.made,
        "contents": [
            {"kind": kind, "number": count, "bytes": size}
            for (kind, _), (count, size) in _contents(manifest).items()
        ],
    }


def _contents(manifest: "Manifest") -> dict[tuple[str, bool], tuple[int, int]]:
    """The number and the size in bytes of each kind of content, and whether files are counted."""
    from repertory.backup import files  # noqa: PLC0415 - rarely needed

    found: dict[tuple[str, bool], tuple[int, int]] = {}

    def add(kind: str, count: int, part: str, *, is_files: bool = False) -> None:
        before, size = found.get((kind, is_files), (0, 0))
        found[kind, is_files] = before + count, size + manifest.parts[part].size

    for one in manifest.collections.values():
        add("points of indexes", one.count, one.part)
    for one in manifest.caches.values():
        add("cached vectors", one.count, one.part)
    for name in manifest.files:
        add(files.kind(name), 1, name, is_files=True)
    return dict(sorted(found.items()))
