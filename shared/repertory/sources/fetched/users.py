"""Notes of which directories use which fetched content."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from repertory.system.files import is_gone, write_atomically

USERS = "users"  # the folder of the notes


class User(msgspec.Struct, frozen=True):
    """A directory, and the folder names of the content that its sources use."""

    directory: str
    contents: list[str]


def note(store: Path, key: str, directory: Path, folders: Iterable[str]) -> None:
    """Note the content that a directory uses, for ``repertory clean``.

    If the note cannot be written, ``clean`` may remove the content, which is then fetched again.

    Args:
        store: The folder of all fetched content.
        key: The key of the directory and its configuration.
        directory: The directory.
        folders: The folders of the content.
    """
    file = store / USERS / f"{key}.json"
    contents = sorted({Path(folder).name for folder in folders})
    with contextlib.suppress(OSError, UnicodeEncodeError):
        if not contents:
            file.unlink(missing_ok=True)
            return
        data = msgspec.json.encode(User(str(directory), contents))
        if not file.exists() or file.read_bytes() != data:
            write_atomically(file, data)


def used(store: Path) -> set[str]:
    """The names of the content used by directories that still exist."""
    users = (user for _, user in _users(store) if not is_gone(Path(user.directory)))
    return {name for user in users for name in user.contents}


def users_gone(store: Path) -> list[Path]:
    """The notes of directories that no longer exist."""
    return [file for file, user in _users(store) if is_gone(Path(user.directory))]


def _users(store: Path) -> Iterator[tuple[Path, User]]:
    for file in (store / USERS).glob("*.json"):
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            yield file, msgspec.json.decode(file.read_bytes(), type=User)
