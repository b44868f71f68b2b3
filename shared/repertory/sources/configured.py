"""The catalogue that one configuration describes: its sources and rules, and their hash."""

import contextlib
import functools
import hashlib
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from typing_extensions import override

from repertory.catalogue.item import Item
from repertory.catalogue.policy import Rule
from repertory.errors import CallError, ConfigurationError, SourceError
from repertory.sources.entry import is_name
from repertory.sources.folder import FolderSource
from repertory.sources.registry import build, files_to_trust, visible_to_of
from repertory.sources.registry import passed_over as passed_over_by
from repertory.sources.source import PassedOver, Problem, Scan, Severity, Source
from repertory.system.paths import is_inside, lies_in


class Catalogue(msgspec.Struct, frozen=True):
    """The sources and rules of one configuration. Earlier sources take precedence.

    Attributes:
        sources: The sources, with unique names.
        problems: The problems of entries, most of which were left out.
        rules: The policies. They are not part of the hash, because they change no item's text.
        passed_over: The places that were not read, each with a reason.
        owner: The key of the directory whose policies and reviews apply; empty for a team, whose
            processes share them. An index belongs to one owner.
        searched: The times of the folders that discovery searched; see ``Walk.times``.
    """

    sources: tuple[Source, ...]
    problems: tuple[Problem, ...] = ()
    rules: tuple[Rule, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    owner: str = ""
    searched: dict[str, int] = {}

    @property
    def error(self) -> str:
        """The first error of an entry, with its file; empty without one."""
        errors = (str(one) for one in self.problems if one.severity is Severity.ERROR)
        return next(errors, "")

    @property
    def hash(self) -> str:
        """The configuration hash: the first 16 hex digits of SHA-256 over sources and owner."""
        identities = sorted(source.identity_as_json() for source in self.sources)
        owner = [self.owner.encode()] if self.owner else []
        return hashlib.sha256(b"\n".join([*identities, *owner])).hexdigest()[:16]

    def may_change(self) -> Callable[[Rule, Item], bool]:
        """A function that tells whether a rule may change an item.

        A rule from a discovered file may change only items in the file's folder. The links of a
        source are resolved only once, not for each item and rule.
        """
        places = {source.name: source.place for source in self.sources}

        @functools.cache
        def is_own(source: str, folder: str) -> bool:
            place = places.get(source, "")
            return bool(place) and lies_in(place, folder)

        def may(rule: Rule, item: Item) -> bool:
            return not rule.within or is_own(item.source, rule.within)

        return may

    def stay_in(self, folder: Path, *, found: bool) -> None:
        """Confine the sources of files to a folder, even if links are put there later.

        Args:
            folder: The folder.
            found: Whether to confine only sources whose path is in it, except skills; see
                ``discover``.
        """
        for source in self.sources:
            if source.fetches or source.folder is None:  # its content is in the data directory
                continue
            is_bound = source.type != "skills" and is_inside(source.place, str(folder))
            if is_bound or not found:
                source.within = str(folder)

    @property
    def known(self) -> dict[str, dict[str, Any]]:
        """The identities of the sources that need trust, by name; for ``build_catalogue``.

        Sources with a ``visible_to`` are left out, because others might see their stand-ins.
        """
        return {
            one.name: dict(one.identity())
            for one in self.sources
            if one.needs_trust and not one.visible_to
        }


class _StandIn(Source):
    """Stands in for a source that is not read. It has the same identity, so its items are kept."""

    def __init__(
        self, name: str, identity: Mapping[str, Any], error: str, location: str = ""
    ) -> None:
        self.type = str(identity.get("type", ""))
        self.name = name
        self.location = location
        self._identity = identity
        self._error = error

    @override
    def configuration(self) -> object:
        return self._identity, self._error

    @override
    def identity(self) -> Mapping[str, Any]:
        return self._identity

    @override
    def scan(self) -> Scan:
        raise SourceError(self._error)

    @override
    def to_call(self, tool: str) -> None:
        raise CallError(self._error)


class Unreadable(_StandIn):
    """Stands in for a source of the last run while its file is unreadable.

    So a half-saved file does not change the configuration hash.
    """

    needs_trust = True


class Withheld(_StandIn):
    """Stands in for a source outside the folder of a discovered configuration without trust."""

    is_trusted = False


def build_catalogue(
    entries: Sequence[Mapping[str, Any]],
    base: Path,
    *,
    found: bool = False,
    known: Mapping[str, Mapping[str, Any]] | None = None,
    named: Sequence[str] = (),
) -> Catalogue:
    """Build the sources of configuration entries.

    If the folders of two sources overlap, the inner source reads its folder.

    Args:
        entries: One mapping for each source; see ``registry.build``.
        base: The folder that relative paths start from.
        found: Whether the entries were discovered, not written. Then an invalid one is left out,
            unless any entry has a ``visible_to``, and a name in use gets a number.
        known: ``Catalogue.known`` of the last run. If an entry is unreadable, known sources that
            are now missing are kept as ``Unreadable``. This also applies to a written entry whose
            file of servers is unreadable, because hosts write such files, too. It does not apply
            if any entry has a ``visible_to``.
        named: The files that the user named for this call, as the ``config`` of an entry. It is
            then not a problem if other files define the same servers.

    Raises:
        ConfigurationError: A written entry is invalid, or two sources have the same name.
    """
    sources: dict[str, Source] = {}
    of_named: set[str] = set()  # the names of the sources whose files the user named
    unreadable: dict[str, Source] = {}
    problems: list[Problem] = []
    passed: list[PassedOver] = []
    # Strict with ``visible_to``: stand-ins do not have it, and problems may name hidden sources.
    is_lenient = not any("visible_to" in entry for entry in entries)
    for entry in entries:
        is_named = _is_named(entry, named)
        try:
            built = _build(entry, base, sources, number=found)
            passed += _left_out(entry, base, is_empty=found and not built)
        except ConfigurationError as exc:
            must_be_valid = is_named or bool(found and entry.get("trusted")) or not is_lenient
            file = _file_of(entry, base, exc)
            if must_be_valid or not (found or file):
                raise
            problems.append(_unreadable(exc, file))
            for name, identity in (known or {}).items():
                unreadable.setdefault(name, Unreadable(name, identity, str(exc)))
            continue
        for source in built:
            first = sources.setdefault(source.name, source)
            first.visible_to = first.visible_to or source.visible_to  # either may restrict it
            if first is source and is_named:
                of_named.add(source.name)
            elif first is not source and source.name not in of_named:
                problems.append(_repeated(source, first))
    for name, source in unreadable.items():
        sources.setdefault(name, source)
    folders = [source for source in sources.values() if isinstance(source, FolderSource)]
    for folder in folders:
        folder.share(folders)
    return Catalogue(tuple(sources.values()), tuple(problems), passed_over=tuple(passed))


def withheld_sources(
    entries: Iterable[tuple[Mapping[str, Any], str]],
    base: Path,
    known: Mapping[str, Mapping[str, Any]],
    names: Iterable[str],
) -> list[Source]:
    """Build stand-ins for the entries that are not read until the user trusts their file.

    Args:
        entries: The entries, each with instructions to trust its file.
        base: The folder that relative paths start from.
        known: ``Catalogue.known`` of the last run.
        names: The names of the catalogue's other sources.

    Raises:
        ConfigurationError: An entry is invalid.
    """
    found: list[Source] = []
    taken = set(names)
    # Any of their files may define a server of the last run, so entries with ``visible_to`` first.
    for entry, reason in sorted(entries, key=lambda one: "visible_to" not in one[0]):
        for source in _withheld(entry, base, reason, known, taken):
            source.visible_to = visible_to_of(entry)
            found.append(source)
            taken.add(source.name)
    return found


def _left_out(entry: Mapping[str, Any], base: Path, *, is_empty: bool) -> list[PassedOver]:
    """The places that an entry does not read; for an entry without sources, at least its files."""
    left_out = passed_over_by(entry, base)
    if left_out or not is_empty:
        return left_out
    files = files_to_trust(entry, base) or ()
    return [PassedOver(str(file), "it defines no servers to index") for file in files]


def _is_named(entry: Mapping[str, Any], named: Sequence[str]) -> bool:
    """Whether the user named the files of an entry for this call."""
    config = entry.get("config")
    return isinstance(config, list) and all(file in named for file in config)


def _file_of(entry: Mapping[str, Any], base: Path, error: ConfigurationError) -> str:
    """The file that defines an entry's sources if the error is in it; else empty."""
    if not entry.get("config"):
        return ""
    with contextlib.suppress(ConfigurationError):
        files = map(str, files_to_trust(entry, base) or ())
        return next((file for file in files if file in str(error)), "")
    return ""


def _unreadable(error: ConfigurationError, file: str) -> Problem:
    """The problem of an entry, with the file and line that its message starts with, if any."""
    line, _, message = str(error).removeprefix(file).partition(": ")
    if not file or (line and not line[1:].isdecimal()):
        return Problem(severity=Severity.ERROR, message=str(error))
    number = int(line[1:]) if line else None
    return Problem(severity=Severity.ERROR, message=message, path=file, line=number)


def _build(
    entry: Mapping[str, Any], base: Path, taken: Mapping[str, Source], *, number: bool
) -> list[Source]:
    """Build an entry; with ``number``, a name in use gets a number."""
    built = build(entry, base)
    if not number:
        return built
    if len(built) == 1 and not built[0].needs_trust and built[0].name in taken:
        return build({**entry, "name": _free(built[0].name, taken)}, base)
    for source in built:
        first = taken.get(source.name)
        if source.needs_trust and first and not first.needs_trust:
            source.name = _free(source.name, taken)  # ids of tools have the server's own name
    return built


def _withheld(
    entry: Mapping[str, Any],
    base: Path,
    reason: str,
    known: Mapping[str, Mapping[str, Any]],
    taken: Collection[str],
) -> list[Withheld]:
    """The stand-ins for the sources of an entry. A file that defines its sources is not read."""
    files, kind = files_to_trust(entry, base), str(entry.get("type"))
    if files is None:
        return [
            Withheld(_free(one.name, taken), one.identity(), reason, one.location)
            for one in build(entry, base)
        ]
    found = [
        Withheld(name, identity, reason)
        for name, identity in sorted(known.items())
        if identity.get("type") == kind and name not in taken
    ]
    for one in found:
        one.needs_trust = True  # so that the next run knows its identity, too
    if found:
        return found
    name = next((file.name for file in files[:1] if is_name(file.name)), kind)
    name = _free(name, taken)
    identity = {"type": kind, "name": name, "files": [str(file) for file in files]}
    return [Withheld(name, identity, reason)]


def _free(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is in use."""
    if name not in taken:
        return name
    names = (f"{name}-{count}" for count in itertools.count(2))
    return next(other for other in names if other not in taken)


def _repeated(source: Source, first: Source) -> Problem:
    """Return the warning for a source whose name is in use.

    Raises:
        ConfigurationError: One of the two must not be defined twice.
    """
    if not (source.needs_trust and first.needs_trust):
        raise ConfigurationError(
            f"Two sources are named {source.name!r} ({first.location} and {source.location}); "
            "give one of them another `name`."
        )
    return Problem(
        severity=Severity.WARNING,
        message=f"The server {source.name!r} is configured in several files; the first that may "
        f"be run is taken ({first.location}).",
    )
