"""Files that a reader sees whole: the old content or the new, never half of it."""

import os
import threading
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file at once, and make its directory if it is missing.

    Raises:
        OSError: The file cannot be written; the old one stays.
    """
    half = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(data)
        half.replace(path)
    except OSError:
        half.unlink(missing_ok=True)
        raise
