"""The checks of the data directory: its disk, its audit log, its databases and its keys."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from repertory.audit import Audit
from repertory.data_directory import REVIEWS, USAGE, VECTORS
from repertory.errors import ConfigurationError, StoreError
from repertory.keys import keys_of
from repertory.settings import Settings
from repertory.system.database import damage
from repertory.system.files import make_directory, unwritable
from repertory.text import counted
from repertory_admin.checks.finding import Finding, State
from repertory_admin.text import short_path

PROBE_SIZE = 1 << 14  # bytes; an empty file can be written even to a full disk
MIN_FREE_BYTES = 500e6  # a model and its optimised copy take half of that

_REMEDIES = {
    VECTORS: "remove it: texts are embedded again when they are needed",
    f"{REVIEWS}/*.sqlite": "restore a backup, or remove it: what the sources offer then counts as "
    "approved",
    f"{USAGE}/*.sqlite": "remove it: only the reports of `repertory insights` are lost",
}


def data_directory(data: Path) -> Iterator[Finding]:
    """Whether the data directory can be written, and has enough free space."""
    probe = data / ".doctor"
    try:
        make_directory(data)
        try:
            probe.write_bytes(bytes(PROBE_SIZE))
        finally:
            probe.unlink(missing_ok=True)
    except (StoreError, OSError) as error:
        why = unwritable(data, error) if isinstance(error, OSError) else error
        yield Finding(State.BAD, "data directory", str(why))
        return
    yield Finding(State.GOOD, "data directory", f"{short_path(str(data))} can be written")
    free = shutil.disk_usage(data).free
    if free > MIN_FREE_BYTES:
        yield Finding(State.GOOD, "free space", f"{free / 1e9:.1f} GB")
    else:
        need = f"less than the {MIN_FREE_BYTES / 1e9:.1f} GB that a model may need"
        text = f"{free / 1e9:.1f} GB, {need}: make room, or choose another --data-dir"
        yield Finding(State.BAD, "free space", text)


def audit(settings: Settings) -> Finding:
    """Whether the audit log can be written."""
    if settings.values.audit_off:
        return Finding(State.GOOD, "audit log", "off")
    file = Audit(settings, settings.data_dir).file
    place = short_path(str(file.path))
    if trouble := file.check():
        return Finding(State.BAD, "audit log", f"{place} cannot be written: {trouble}")
    return Finding(State.GOOD, "audit log", place)


def databases(data: Path) -> Iterator[Finding]:
    """Whether the databases of all directories can be read completely."""
    bad = [
        Finding(State.BAD, "database", f"{path} is damaged ({why}); {remedy}")
        for pattern, remedy in _REMEDIES.items()
        for path in sorted(data.glob(pattern))
        if (why := damage(path))
    ]
    yield from bad or [Finding(State.GOOD, "databases", "can be read")]


def keys(settings: Settings, directory: Path) -> Finding:
    """Whether the keys of a directory's server can be read."""
    stored = keys_of(settings, directory)
    try:
        count = len(stored.list())
    except ConfigurationError as error:
        return Finding(State.BAD, "keys", str(error))
    return Finding(State.GOOD, "keys", counted(count, "key") if stored.required else "none")
