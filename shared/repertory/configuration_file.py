"""A configuration file as its text, for programs that change a part of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repertory.bounded import read_bytes
from repertory.errors import ConfigurationError, StoreError
from repertory.files import write_atomically
from repertory.settings import MAX_FILE_SIZE, PROJECT_FILE, Settings
from repertory.trust import digest_of, lies_in
from repertory.trusting import wanted
from repertory.workspace import Workspace

MODE = 0o644  # of a new file, less the umask: a project's file is for all who work on it


def project_file(settings: Settings, directory: Path) -> Path:
    """The project's configuration file, which may be missing."""
    return settings.file or directory / PROJECT_FILE


def read(file: Path) -> str:
    """The text of a configuration file; empty if it is missing.

    Raises:
        ConfigurationError: It cannot be read.
    """
    try:
        return read_bytes(str(file), MAX_FILE_SIZE).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read as text: {error}.") from error


def write(file: Path, text: str) -> bytes:
    """Replace a configuration file, where a link leads as well, and return its content.

    Raises:
        StoreError: It cannot be written.
    """
    place = file.resolve()
    data = text.encode()
    try:
        mode = place.stat().st_mode & 0o777 if place.exists() else MODE
        write_atomically(place, data, mode=mode)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}.") from error
    return data


def check_place(file: Path) -> None:
    """Refuse to write a file that was found where a link of a stranger leads.

    Raises:
        StoreError: It leads out of its folder.
    """
    if not lies_in(file, file.parent):
        raise StoreError(
            f"{file} is a link that leads out of its folder, so it was not written; replace it by "
            "a file, or name the file with --config."
        )


def rewrite(
    file: Path, text: str, settings: Settings, directory: Path, flags: Mapping[str, Any]
) -> bool:
    """Replace a configuration file; one that could do all it asked for can still do so.

    Args:
        file: The file.
        text: Its new text.
        settings: The active settings.
        directory: The project's directory.
        flags: The flags of the command line.

    Returns:
        Whether it can do all it asks for; otherwise it waits for the user's trust.

    Raises:
        ConfigurationError: The old file is invalid.
        StoreError: It cannot be written, or it is a link that leads out of its folder.
    """
    needs_trust = file == project_file(settings, directory) and not settings.named
    if needs_trust:
        check_place(file)
    is_free = (
        not needs_trust or not file.exists() or not wanted(file, flags, settings.variables).wishes
    )
    data = write(file, text)
    if needs_trust and is_free:
        Workspace(settings, directory).trust.trust(file, digest_of(data))
    return is_free
