"""Edit the files of a source; each edit returns the paths that its file events would name."""

import contextlib
import os
from pathlib import Path

from repertory.sources.documents import Documents
from repertory.sources.registry import build
from repertory.sources.skill_folders import SkillFolders
from repertory.sources.source import Source
from tests.support.builders import write


def a_source(type_: str, root: Path) -> Source:
    """Build a source of a type on a folder; its subfolders ``a`` and ``d`` hold skills."""
    [source] = build({"type": type_, "path": str(root), "name": "team"}, Path("/"))
    skills = [SkillFolders(name=one, path=root / one) for one in ("a", "d")]
    if isinstance(source, Documents):
        source.share([source, *skills])
    return source


def delete(path: Path) -> list[Path]:
    """Delete a file or a folder; returns the paths that events would name."""
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o700)
        gone = [one for child in path.iterdir() for one in delete(child)]
        path.rmdir()
        return [*gone, path]
    with contextlib.suppress(OSError):
        path.unlink()
    return [path]


def edit(  # noqa: PLR0911 - one return per kind of edit
    root: Path, how: str, place: str = "", other: str = ""
) -> list[Path]:
    """Make one edit; returns the paths that events would name. Impossible edits are skipped."""
    path, target = root / place, root / other
    with contextlib.suppress(OSError):
        if how == "write":
            new = [one for one in (path, *path.parents) if not one.exists()]
            write(path, other)
            return [path, path.resolve(), *new]  # for a link, the event names its target
        if how == "delete":
            return delete(path)
        if how == "empty":
            return [one for child in root.iterdir() for one in delete(child)]
        if how == "close" and path.is_dir():
            path.chmod(0o700 if path.stat().st_mode & 0o700 == 0 else 0)
            return [path]
        if how == "move" and not os.path.lexists(path):
            return []  # otherwise the target's folder would be created without an event
        if how in ("move", "link") and not os.path.lexists(target):
            new = [one for one in target.parents if not one.exists()]
            target.parent.mkdir(parents=True, exist_ok=True)
            if how == "link":
                target.symlink_to(path)
                return [target, *new]
            path.rename(target)
            return [path, target, *new]
    return []
