"""The catalogue: the sources of one configuration, and the hash that names it."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from repertory.errors import ConfigurationError
from repertory.sources.registry import build
from repertory.sources.source import Source


class Catalogue(msgspec.Struct, frozen=True):
    """The sources of one configuration; of items of one name, the earlier source's is taken."""

    sources: tuple[Source, ...]

    @property
    def hash(self) -> str:
        """The configuration hash: SHA-256 over the sorted source list, its first 16 hex digits."""
        identities = sorted(
            msgspec.json.encode(
                {"type": source.type, "name": source.name, **source.identity()},
                order="deterministic",
            )
            for source in self.sources
        )
        return hashlib.sha256(b"\n".join(identities)).hexdigest()[:16]


def catalogue(entries: Iterable[Mapping[str, Any]], base: Path) -> Catalogue:
    """Build the sources of configuration entries.

    Args:
        entries: One mapping for each source; see ``registry.build``.
        base: The folder that relative paths start from.

    Raises:
        ConfigurationError: An entry is wrong, or two sources have one name.
    """
    sources = [source for entry in entries for source in build(entry, base)]
    taken: dict[str, Source] = {}
    for source in sources:
        first = taken.setdefault(source.name, source)
        if first is not source:
            raise ConfigurationError(
                f"Two sources are named {source.name!r} ({first.location} and {source.location}); "
                "give one of them another `name`."
            )
    return Catalogue(tuple(sources))
