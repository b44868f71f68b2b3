"""Resolve paths: ``~``, links, and names as their folders list them; compare them with folders."""

import errno
import os
import stat
import unicodedata
from pathlib import Path

from repertory.errors import ConfigurationError

_MAX_LINKS = 40  # per path, as on Linux


class UnfitFileError(OSError):
    """A file that exists but must not be read; ``strerror`` says why, with "it" as its subject."""


def expanded(path: Path | str) -> Path:
    """A path with ``~`` expanded.

    Raises:
        ConfigurationError: It names the home of an unknown user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigurationError(
            f"The path {str(path)!r} names a home that is unknown; write the whole path."
        ) from error


def real_path(path: Path | str) -> str:
    """The absolute path with links resolved; unresolved if one of them may not be followed.

    Read such a path with ``read_inside``, which does not follow such a link either.
    """
    return followed(path) or os.path.abspath(path)  # noqa: PTH100 - links stay


def followed(path: Path | str) -> str:
    """The absolute path with links resolved; empty if one of them may not be followed.

    This includes a path with more links than the system follows, even if some of its folders are
    missing.
    """
    try:
        return resolved(path)
    except (OSError, ValueError):  # a link of another user's process, a zero byte
        return ""


def resolved(path: Path | str) -> str:
    """The absolute path with links resolved. ``os.path.realpath`` is slow for a chain of links.

    Raises:
        UnfitFileError: The path has too many links.
        OSError: A link in the path may not be followed.
    """
    if os.name == "nt":
        return os.path.realpath(path)
    real, links = "/", 0
    rest = os.path.join(os.getcwd(), path).split("/")[::-1]  # noqa: PTH109, PTH118 - not cleaned
    while rest:
        name = rest.pop()
        if name == "..":
            real = os.path.dirname(real)  # noqa: PTH120 - speed
        elif name not in ("", "."):
            below = os.path.join(real, name)  # noqa: PTH118 - speed
            if not _is_link(below):
                real = below
                continue
            links += 1
            if links > _MAX_LINKS:
                raise UnfitFileError(errno.ELOOP, "it leads over too many links", str(path))
            target = os.readlink(below)  # noqa: PTH115 - speed
            real = "/" if target.startswith("/") else real
            rest += target.split("/")[::-1]
    return real


def _is_link(path: str) -> bool:
    """Whether a path is a link; also False if that is unknown."""
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False


def listed_path(path: Path | str) -> str:
    """Like ``real_path``, with each name as its folder lists it.

    The results differ on file systems that ignore case or Unicode normalization, as on macOS.
    """
    real = real_path(path)
    return real if os.name == "nt" else "/" + as_listed("/", real[1:])


def as_listed(folder: str, place: str) -> str:
    """A path relative to a folder, with each name as its folder lists it.

    A name is unchanged if it does not exist or its folder cannot be listed.
    """
    names: list[str] = []
    for name in filter(None, place.split("/")):
        names.append(_name_in(os.path.join(folder, *names), name))  # noqa: PTH118 - speed
    return "/".join(names)


def _name_in(folder: str, name: str) -> str:
    """The name under which a folder lists the file with this name."""
    composed = unicodedata.normalize("NFC", name)
    others = {name.swapcase(), composed, unicodedata.normalize("NFD", name)} - {name}

    def is_there(one: str) -> bool:
        return os.path.lexists(os.path.join(folder, one))  # noqa: PTH118 - speed

    # A folder is only listed if it has the name in another spelling, too. Most have not.
    if not (any(map(is_there, others)) and is_there(name)):
        return name
    try:
        names = os.listdir(folder)  # noqa: PTH208 - speed
    except OSError:
        return name
    if name in names:
        return name
    listed = {unicodedata.normalize("NFC", one): one for one in names}
    alike = (one for key, one in listed.items() if key.casefold() == composed.casefold())
    return listed.get(composed) or next(alike, name)


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies below it; both are absolute."""
    return path == folder or path.startswith(os.path.join(folder, ""))  # noqa: PTH118 - speed


def lies_in(path: Path | str, folder: Path | str) -> bool:
    """Whether a path is a folder or lies below it, after resolving links.

    False for a path with a link that may not be followed.
    """
    real = followed(path)
    return bool(real) and is_inside(listed_path(real), listed_path(folder))


def place_in(folder: str, path: str) -> str | None:
    """A path relative to a folder, with ``/``, empty for the folder itself; None if outside.

    Both are absolute.
    """
    if not is_inside(path, folder):
        return None
    return path[len(folder) :].lstrip(os.sep).replace(os.sep, "/")


def place_below(root: str, path: str) -> str:
    """The path of a file relative to a folder. A file that is a link keeps its own name.

    Args:
        root: The absolute path of the folder, without links.
        path: The path of the file.

    Raises:
        UnfitFileError: The file is outside the folder, or its path has too many links.
        OSError: A link in its path may not be followed.
    """
    above, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - links stay
    real = os.path.join(resolved(above), name)  # noqa: PTH118 - of strings
    place = place_in(root, real)
    if place is None:
        raise UnfitFileError(errno.EXDEV, f"it leads out of {root}", real)
    return place
