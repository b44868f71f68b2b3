"""The catalogue that one configuration describes: its sources and rules, and their hash."""

import contextlib
import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from typing_extensions import override

from repertory.bounded import is_inside
from repertory.catalogue.item import Item
from repertory.catalogue.policy import Rule
from repertory.errors import CallError, ConfigurationError, SourceError
from repertory.sources.entry import is_name
from repertory.sources.folder import FolderSource
from repertory.sources.registry import build, files_to_trust, visible_to_of
from repertory.sources.registry import passed_over as passed_over_by
from repertory.sources.source import PassedOver, Problem, Scan, Severity, Source
from repertory.trust import lies_in


class Catalogue(msgspec.Struct, frozen=True):
    """The sources and rules of one configuration. An earlier source takes precedence.

    Attributes:
        sources: The sources, their names unique.
        problems: One for each entry that was left out.
        rules: The policies. They are not part of the hash, because they change no item's text.
        passed_over: The places that discovery did not take.
        owner: The key of the directory whose policies and reviews hold; empty for a team, whose
            processes have the same ones. An index is of one owner.
        searched: The times of the folders in which sources were looked for; see ``Walk.times``.
    """

    sources: tuple[Source, ...]
    problems: tuple[Problem, ...] = ()
    rules: tuple[Rule, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    owner: str = ""
    searched: dict[str, int] = {}

    @property
    def hash(self) -> str:
        """The configuration hash: the first 16 hex digits of SHA-256 over sources and owner."""
        identities = sorted(source.identity_as_json() for source in self.sources)
        owner = [self.owner.encode()] if self.owner else []
        return hashlib.sha256(b"\n".join([*identities, *owner])).hexdigest()[:16]

    def may_change(self) -> Callable[[Rule, Item], bool]:
        """A function that says whether a rule may change an item.

        A rule of a file that was found may change only items of the file's folder. Where the links
        of a source lead is looked up once, and not for each item and rule.
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
        """Let no source of files leave a folder, whatever links are put in its place.

        Args:
            folder: The folder.
            found: Only those sources whose path is in it, and no skills; see ``discover``.
        """
        for source in self.sources:
            if source.fetches or source.folder is None:  # its content lies in the data directory
                continue
            is_bound = source.type != "skills" and is_inside(source.place, str(folder))
            if is_bound or not found:
                source.within = str(folder)

    @property
    def known(self) -> dict[str, dict[str, Any]]:
        """The identities of the sources that need trust, by name; for ``build_catalogue``.

        Not of those with a ``visible_to``: what stands in for one might be seen by others.
        """
        return {
            one.name: dict(one.identity())
            for one in self.sources
            if one.needs_trust and not one.visible_to
        }


class _StandIn(Source):
    """Stands for a source that is not read, with its identity: its items stay as they are."""

    def __init__(self, name: str, identity: Mapping[str, Any], error: str) -> None:
        self.type = str(identity.get("type", ""))
        self.name = name
        self.location = ""
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
    """Stands for a source of the last run while its file is unreadable.

    A half-saved file does not change the configuration hash.
    """

    needs_trust = True


class Withheld(_StandIn):
    """Stands for a source outside of the folder of a found configuration, until it is trusted."""

    is_trusted = False


def build_catalogue(
    entries: Iterable[Mapping[str, Any]],
    base: Path,
    *,
    found: bool = False,
    known: Mapping[str, Mapping[str, Any]] | None = None,
    passed_over: Iterable[PassedOver] = (),
    named: Sequence[str] = (),
    rules: tuple[Rule, ...] = (),
    withheld: Iterable[tuple[Mapping[str, Any], str]] = (),
) -> Catalogue:
    """Build the sources of configuration entries.

    Where the folders of two sources overlap, the inner one reads its folder.

    Args:
        entries: One mapping for each source; see ``registry.build``.
        base: The folder that relative paths start from.
        found: The entries were found, not written: an invalid one is left out, unless an entry has
            a ``visible_to``, and a name in use gets a number.
        known: ``Catalogue.known`` of the last run. If an entry is unreadable, each known source
            that is now missing stays, as ``Unreadable``. So it is with a written entry whose file
            of servers cannot be read, since hosts write such files, too; not if an entry has a
            ``visible_to``.
        passed_over: What discovery did not take.
        named: The files that the user named for this call; an entry of these alone lists them.
            That other files define the same servers is then no problem.
        rules: The configuration's policies.
        withheld: The entries that are not read until the user trusts their file, each with the way
            to do so.

    Raises:
        ConfigurationError: A written entry is invalid, or two sources have one name.
    """
    sources: dict[str, Source] = {}
    missing: dict[str, Source] = {}
    problems: list[Problem] = []
    passed = list(passed_over)
    entries = list(entries)
    # What stands in for a source that is not read has no list of those who may see it, and a
    # problem may name a source that is hidden from whom it is shown.
    is_lenient = not any("visible_to" in entry for entry in entries)
    taken: dict[str, bool] = {}  # by the name of a source: whether the user named its file
    for entry in entries:
        try:
            built = _build(entry, base, sources, number=found)
            passed += _left_out(entry, base, is_empty=found and not built)
            is_named = _is_named(entry, named)
            for source in built:
                first = sources.setdefault(source.name, source)
                first.visible_to = first.visible_to or source.visible_to  # one may hide it
                if not taken.setdefault(source.name, is_named) and first is not source:
                    problems.append(_repeated(source, first))
        except ConfigurationError as exc:
            is_named = _is_named(entry, named) or bool(found and entry.get("trusted"))
            if is_named or not is_lenient or not (found or _is_of_file(entry, base, exc)):
                raise
            problems.append(Problem(severity=Severity.ERROR, message=str(exc)))
            for name, identity in (known or {}).items():
                missing.setdefault(name, Unreadable(name, identity, str(exc)))
    for name, source in missing.items():
        sources.setdefault(name, source)
    # Any of their files may define a server of the last run: fewer see it, rather than more.
    for entry, reason in sorted(withheld, key=lambda one: "visible_to" not in one[0]):
        sources |= {one.name: one for one in _withheld(entry, base, reason, known or {}, sources)}
    _share(sources.values())
    return Catalogue(tuple(sources.values()), tuple(problems), rules, tuple(passed))


def _left_out(entry: Mapping[str, Any], base: Path, *, is_empty: bool) -> list[PassedOver]:
    """What an entry does not read; of one without sources at least its files."""
    left_out = passed_over_by(entry, base)
    if left_out or not is_empty:
        return left_out
    files = files_to_trust(entry, base) or ()
    return [PassedOver(str(file), "it defines no servers to index") for file in files]


def _is_named(entry: Mapping[str, Any], named: Sequence[str]) -> bool:
    """Whether the user named the files of an entry for this call."""
    config = entry.get("config")
    return isinstance(config, list) and all(file in named for file in config)


def _is_of_file(entry: Mapping[str, Any], base: Path, error: ConfigurationError) -> bool:
    """Whether a file that defines the sources of an entry is wrong, and not the entry."""
    if not entry.get("config"):
        return False
    with contextlib.suppress(ConfigurationError):
        return any(str(file) in str(error) for file in files_to_trust(entry, base) or ())
    return False


def _share(sources: Iterable[Source]) -> None:
    folders = [source for source in sources if isinstance(source, FolderSource)]
    for folder in folders:
        folder.share(folders)


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
    taken: Mapping[str, Source],
) -> list[Withheld]:
    """The stand-ins for an entry, seen by those who would see its sources.

    A file that would define its sources is not read.
    """
    found: list[Withheld] = []
    visible_to, files, kind = visible_to_of(entry), files_to_trust(entry, base), entry.get("type")
    if files is None:
        for source in build(entry, base):
            found.append(Withheld(_free(source.name, taken), source.identity(), reason))
            found[-1].location = source.location
    else:
        last = {name: one for name, one in known.items() if one.get("type") == kind}
        for name in sorted(last.keys() - taken.keys()):
            found.append(Withheld(name, last[name], reason))
            found[-1].needs_trust = True  # so that the next run knows its identity, too
        if not found:
            names = [file.name if is_name(file.name) else kind for file in files]
            name = _free(str(next(iter(names), kind)), taken)
            identity = {"type": kind, "name": name, "files": [str(file) for file in files]}
            found.append(Withheld(name, identity, reason))
    for one in found:
        one.visible_to = visible_to
    return found


def _free(name: str, taken: Mapping[str, Source]) -> str:
    if name not in taken:
        return name
    names = (f"{name}-{count}" for count in itertools.count(2))
    return next(other for other in names if other not in taken)


def _repeated(source: Source, first: Source) -> Problem:
    """Return the warning for a source whose name is in use.

    Raises:
        ConfigurationError: One of the two may be defined only once.
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
