"""The secret of a user's browsers, which stay signed in when a server restarts."""

import contextlib
import secrets
from pathlib import Path

from repertory.data_directory import SERVERS
from repertory.system.files import unwritable, write_atomically

SECRET_LENGTH = 43  # characters of 256 random bits


def browser_secret(data_dir: Path) -> str:
    """The secret from which the browser cookies of a user are derived; created if missing.

    Raises:
        StoreError: The data directory cannot be written.
    """
    place = data_dir / SERVERS / "browser.secret"
    with contextlib.suppress(OSError, ValueError):
        if len(found := place.read_text("ascii")) >= SECRET_LENGTH:
            return found
    found = secrets.token_urlsafe(32)
    try:
        write_atomically(place, found.encode())
    except OSError as exc:
        raise unwritable(place.parent, exc) from exc
    return found
