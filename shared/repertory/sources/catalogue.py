"""The catalogue: the sources of one configuration, and the hash that names it."""

import hashlib
import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from repertory.catalogue.policy import Rule
from repertory.errors import ConfigurationError
from repertory.sources.registry import build
from repertory.sources.source import Problem, Severity, Source
from repertory.sources.unreadable import Unreadable


class Catalogue(msgspec.Struct, frozen=True):
    """What one configuration says; of items of one name, the earlier source's is taken.

    Attributes:
        sources: The sources, their names unique.
        problems: What had to be left out.
        rules: What it decides about items; no part of the hash, for it changes none of their texts.
    """

    sources: tuple[Source, ...]
    problems: tuple[Problem, ...] = ()
    rules: tuple[Rule, ...] = ()

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


def catalogue(
    entries: Iterable[Mapping[str, Any]],
    base: Path,
    *,
    found: bool = False,
    known: Mapping[str, Mapping[str, Any]] | None = None,
    rules: tuple[Rule, ...] = (),
) -> Catalogue:
    """Build the sources of configuration entries.

    Args:
        entries: One mapping for each source; see ``registry.build``.
        base: The folder that relative paths start from.
        found: Nobody wrote the entries: one that is wrong is left out, and a name that is taken
            gets a number.
        known: The identities of the servers of the last run, by name: while an entry cannot be
            read, those that are missing are taken to be its.
        rules: What the configuration decides about items.

    Raises:
        ConfigurationError: An entry that somebody wrote is wrong, or two sources have one name.
    """
    sources: dict[str, Source] = {}
    missing: dict[str, Source] = {}
    problems: list[Problem] = []
    for entry in entries:
        try:
            for source in _build(entry, base, sources, number=found):
                first = sources.setdefault(source.name, source)
                if first is not source:
                    problems.append(_repeated(source, first))
        except ConfigurationError as exc:
            if not found or entry.get("trusted"):  # somebody named it
                raise
            problems.append(Problem(severity=Severity.ERROR, message=str(exc)))
            for name, identity in (known or {}).items():
                missing.setdefault(name, Unreadable(name, identity, str(exc)))
    for name, source in missing.items():
        sources.setdefault(name, source)
    return Catalogue(tuple(sources.values()), tuple(problems), rules)


def _build(
    entry: Mapping[str, Any], base: Path, taken: Mapping[str, Source], *, number: bool
) -> list[Source]:
    built = build(entry, base)
    if number and len(built) == 1 and built[0].type != "mcp" and built[0].name in taken:
        names = (f"{built[0].name}-{count}" for count in itertools.count(2))
        free = next(name for name in names if name not in taken)
        return build({**entry, "name": free}, base)
    return built


def _repeated(source: Source, first: Source) -> Problem:
    """What to say of a source whose name is taken; only servers may be named in several places.

    Raises:
        ConfigurationError: They are no servers.
    """
    if source.type != "mcp" or first.type != "mcp":
        raise ConfigurationError(
            f"Two sources are named {source.name!r} ({first.location} and {source.location}); "
            "give one of them another `name`."
        )
    return Problem(
        severity=Severity.WARNING,
        message=f"The server {source.name!r} is configured in several files; the first that may "
        f"be run is taken ({first.location}).",
    )
