"""The checks of `repertory doctor` for the databases and keys in the data directory."""

from collections.abc import Iterator
from pathlib import Path

from repertory.data_directory import REVIEWS, USAGE, VECTORS
from repertory.database import damage
from repertory.errors import ConfigurationError
from repertory.keys import keys_of
from repertory.settings import Settings
from repertory.text import counted
from repertory_admin.checks import Finding, State

_REMEDIES = {
    VECTORS: "remove it: texts are embedded again when they are needed",
    f"{REVIEWS}/*.sqlite": "restore a backup, or remove it: what the sources offer then counts as "
    "approved",
    f"{USAGE}/*.sqlite": "remove it: only the reports of `repertory insights` are lost",
}


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
