"""Read and change the text of a configuration file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repertory.errors import ConfigurationError, StoreError
from repertory.file_settings import MAX_FILE_SIZE
from repertory.project.trust_requests import trust_request
from repertory.project.workspace import Workspace
from repertory.settings import PROJECT_FILE, Settings
from repertory.sources.reading import toml
from repertory.system.files import write_atomically
from repertory.system.paths import lies_in
from repertory.system.untrusted_files import read_bytes
from repertory.trust import digest_of

BY_HAND = "edit the file by hand"
MODE = 0o644  # of a new file, before the umask: everyone on the project may read it


def project_file(settings: Settings, directory: Path) -> Path:
    """The project's configuration file, which may be missing."""
    return settings.file or directory / PROJECT_FILE


def read(file: Path) -> str:
    """The text of a configuration file; empty if it is missing.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    try:
        return read_bytes(str(file), MAX_FILE_SIZE).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read as text: {error}.") from error


def is_toml(text: str) -> bool:
    """Whether a text is valid TOML."""
    try:
        toml.parse(text)
    except toml.TomlError:
        return False
    return True


def checked(text: str, before: str, key: str, tables: Sequence[Mapping[str, Any]]) -> str:
    """Check that a change affected only the tables of one key, and return the changed text.

    Args:
        text: The changed text.
        before: The text before the change.
        key: The key.
        tables: The expected tables of the key; if empty, the key must be absent.

    Raises:
        ConfigurationError: The change affected something else.
    """
    expected = {**toml.parse(before), key: [*tables]}
    if not tables:
        del expected[key]
    if not is_toml(text) or toml.parse(text) != expected:
        raise ConfigurationError(
            f"The configuration file cannot be edited without losing a part of it; {BY_HAND}."
        )
    return text


def write(file: Path, text: str) -> bytes:
    """Replace a configuration file, or the target if it is a link, and return its new content.

    Raises:
        StoreError: The file cannot be written.
    """
    place = file.resolve()
    data = text.encode()
    try:
        mode = place.stat().st_mode & 0o777 if place.exists() else MODE
        write_atomically(place, data, mode=mode, is_durable=True)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}.") from error
    return data


def check_place(file: Path) -> None:
    """Refuse to write a discovered file if it is a link that leads out of its folder.

    Raises:
        StoreError: The file is such a link.
    """
    if not lies_in(file, file.parent):
        raise StoreError(
            f"{file} is a link that leads out of its folder, so it was not written; replace it by "
            "a file, or name the file with --config."
        )


def becomes_trusted(file: Path, settings: Settings, directory: Path) -> bool:
    """Whether a file becomes trusted as a whole when the user adds something that needs trust.

    That is so if it was discovered, is not trusted, and asks for nothing that needs trust yet.

    Raises:
        ConfigurationError: The file is invalid.
    """
    return not _is_free(file, settings, directory) and not _wishes(file, settings)


def rewrite(
    file: Path, text: str, settings: Settings, directory: Path, *, by_user: bool = False
) -> bool:
    """Replace a configuration file. A trusted file stays trusted; a new one becomes trusted.

    Args:
        file: The file.
        text: The new text.
        settings: The active settings.
        directory: The project's directory.
        by_user: Whether the user of this machine made the change. If only this change asks for
            something that needs trust, the file becomes trusted; see ``becomes_trusted``.

    Returns:
        Whether the file may do all it asks for; otherwise it needs the user's trust.

    Raises:
        ConfigurationError: The old file is invalid.
        StoreError: The file cannot be written, or is a link that leads out of its folder.
    """
    if not _is_found(file, settings, directory):
        write(file, text)
        return True
    check_place(file)
    # Both concern the old content.
    is_free = _is_free(file, settings, directory)
    becomes_free = is_free or (by_user and not _wishes(file, settings))
    data = write(file, text)
    if not is_free and not _wishes(file, settings):
        return True
    if becomes_free:
        Workspace(settings, directory).trust.trust(file, digest_of(data))
    return becomes_free


def _is_found(file: Path, settings: Settings, directory: Path) -> bool:
    """Whether a file is the project's file and was discovered, not named by the user."""
    return file == project_file(settings, directory) and not settings.named


def _is_free(file: Path, settings: Settings, directory: Path) -> bool:
    """Whether a file may do all it asks for: it was not discovered, is trusted, or is missing."""
    return (
        not _is_found(file, settings, directory)
        or not file.exists()
        or Workspace(settings, directory).trust.is_trusted(file)
    )


def _wishes(file: Path, settings: Settings) -> list[str]:
    return trust_request(file, settings.flags, settings.variables).wishes
