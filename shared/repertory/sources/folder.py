"""The base class of sources that read a folder: a shared scan, and a parser for each type."""

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from typing_extensions import override

from repertory.catalogue.item import Item, Kind
from repertory.errors import ConfigurationError, SourceError
from repertory.sources.entry import check_options, checked_name, source_path
from repertory.sources.folder_contents import Entry, FolderContents
from repertory.sources.folder_memory import (
    FolderState,
    Memory,
    settled_signature,
    settled_time,
)
from repertory.sources.reading.fields import extra, tags
from repertory.sources.reading.files import FILE_LIMIT, Found, read_file
from repertory.sources.reading.gitignore import IGNORE_FILE, GitIgnore
from repertory.sources.reading.policy import authored
from repertory.sources.reading.walk import MAX_DEPTH, SKIPPED, Walk
from repertory.sources.reading_cache import Reading, ReadingCache
from repertory.sources.source import (
    Change,
    PassedOver,
    Problem,
    Scan,
    Source,
    WatchedFolder,
    error,
)
from repertory.sources.text_file import TextFile
from repertory.sources.walked import Walked, outermost
from repertory.system.files import Signature
from repertory.system.paths import as_listed, is_inside, lies_in, listed_path, place_in, real_path

HIDDEN = "it is hidden"
IGNORED = "a .gitignore excludes it"
MAX_SCANS = 3  # scans in a row if the folder keeps changing


class FolderSource(Source):
    """A source that reads items from the files of a folder.

    A subclass selects the files (``wants``, ``passes_over``), gives them ids (``file_id``) and
    parses them (``read``).

    If the folder of a source contains that of another source of the same type, the inner source
    reads its folder, so that nothing is found twice; see ``share``.
    """

    file_limit: ClassVar[int] = FILE_LIMIT
    # Whether a file may have several items, whose ids then start with the file's id and a slash.
    many_in_a_file: ClassVar[bool] = False
    # If each item is a folder, the possible names of its file. The first existing one is read.
    item_files: ClassVar[Collection[str]] = ()
    # The types of inner sources that take only single files from this one. Other inner sources of
    # the same type take their whole folder.
    leaves_files_to: ClassVar[tuple[str, ...]] = ()
    # Whether to leave out hidden folders, and files excluded by a ``.gitignore`` below the root.
    gitignore: bool = False

    def __init__(self, *, name: str, path: Path | str, gitignore: bool = False) -> None:
        self.name = checked_name(name)
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - without .., links kept
        self.gitignore = gitignore or self.gitignore
        self.location = str(self.path)
        self.folder = WatchedFolder(self.path, self.concerns, self.is_closed)
        self._readings = ReadingCache()
        self._ignored = GitIgnore(self.path)
        self._others: Sequence[FolderSource] = ()
        self._inner: dict[str, FolderSource] = {}  # by place
        self._seen = FolderState()
        self._texts: TextFile | None = None
        self._contents: FolderContents | None = None
        self._walked: Walked | None = None
        self._noted: list[str] | None = None  # the paths changed during a scan; None without one
        self._is_unread = False

    @classmethod
    def build(cls, entry: Mapping[str, Any], base: Path) -> list[Source]:
        """Build the source of a configuration entry.

        It has a ``path``, and optionally a ``name`` and ``gitignore``: whether to leave out hidden
        folders, and files excluded by a ``.gitignore`` below the path.

        Raises:
            ConfigurationError: The entry is invalid.
        """
        check_options(entry, "name", "path", "gitignore")
        path = source_path(entry, base)
        gitignore = entry.get("gitignore", False)
        if not isinstance(gitignore, bool):
            raise ConfigurationError(
                f"`gitignore` of the source {path} is {gitignore!r}; it must be true or false."
            )
        name = entry.get("name") or Path(real_path(path)).name or cls.type
        return [cls(name=name, path=path, gitignore=gitignore)]

    @override
    def identity(self) -> Mapping[str, Any]:
        named: dict[str, Any] = {
            "type": self.type,
            "name": self.name,
            "path": self.path.as_posix(),
        }
        if self.gitignore != type(self).gitignore:
            named["gitignore"] = self.gitignore
        if self._inner:
            named["without"] = sorted(self._inner)
        return named

    def share(self, sources: Sequence["FolderSource"]) -> None:
        """Leave files inside this folder to the other sources of a catalogue that read them."""
        others = [one for one in sources if one is not self]
        kinds = (self.type, *self.leaves_files_to)
        self._others = [one for one in others if one.type == self.type]
        self._inner = {
            place: one
            for one in others
            if one.type in kinds and (place := self._place(one.real_path))
        }

    def check_place(self) -> None:
        """Check that the path is inside ``within``.

        Raises:
            SourceError: The path now leads out of it.
        """
        if self.within and not lies_in(self.path, self.within):
            raise SourceError(f"{self.path} now leads out of {self.within}, so it is not read.")

    @cached_property
    def real_path(self) -> str:
        """The path of the folder without links, with each name as listed."""
        return listed_path(self.path)

    def reaches(self, real: str) -> bool:
        """Whether a scan enters the folder with this real path."""
        place = self._place(real)
        if place is None:
            return False
        parts = place.split("/") if place else []
        return len(parts) <= MAX_DEPTH and not any(
            name in SKIPPED or self.passes_over("/".join(parts[: depth + 1]))
            for depth, name in enumerate(parts)
        )

    def may_read(self, real: str) -> bool:
        """Whether the file with this real path is in the folder and has a wanted name."""
        return self._place(real) is not None and self.wants(os.path.basename(real))  # noqa: PTH119 - speed

    def _place(self, real: str) -> str | None:
        """The place of a real path below the root, empty for the root; None outside."""
        return place_in(self.real_path, real)

    @override
    def is_away(self) -> bool:
        return not os.path.exists(self.path)  # noqa: PTH110 - False also below a closed folder

    def wants(self, filename: str) -> bool:
        """Whether a file of this name may contain items."""
        raise NotImplementedError

    def concerns(self, filename: str) -> bool:
        """Whether a change of a file of this name can change the scan."""
        if self.wants(filename) or (self.gitignore and filename == IGNORE_FILE):
            return True
        return self._walked is not None and filename in self._walked.linked

    def is_closed(self, path: str) -> bool:
        """Whether the folder at a real path could not be listed by the last scan."""
        return self._walked is not None and self._place(path) in self._walked.unlisted

    def decides(self, filename: str) -> bool:
        """Whether a file of this name decides which other files of its folder are read."""
        return self.concerns(filename) and not self.wants(filename)

    def passes_over(self, place: str) -> str:
        """Why a folder below the root is not read; empty if it is read."""
        inner = self._inner.get(place)
        if inner is not None and inner.type not in self.leaves_files_to:
            return f"the source {inner.name} reads it"
        if self.gitignore and self.hides(place):
            return HIDDEN
        return IGNORED if self._is_ignored(f"{place}/") else ""

    def hides(self, place: str) -> bool:
        """Whether a folder is hidden, given that its parents are read."""
        return place.rpartition("/")[2].startswith(".")

    def file_id(self, place: str) -> str:
        """The id of the item of the file at a place."""
        if self.item_files:
            place = place.rpartition("/")[0] or self.path.name
        return f"{self.name}/{place}"

    def read(self, file: Found, text: str) -> Reading:
        """Parse one file. The result depends only on the text and the file's place.

        Its problems need no item, unless ``many_in_a_file``.
        """
        raise NotImplementedError

    def item(
        self,
        file: Found,
        fields: dict[str, Any],
        *,
        name: str,
        description: str,
        body: str = "",
        kind: Kind = Kind.SKILL,
    ) -> tuple[Item, list[Problem]]:
        """Build the item of a file from its front matter or manifest.

        Returns:
            The item with its tags, extra fields and policy, and the problems of the policy.
        """
        policy, problems = authored(fields, file.path)
        item = Item(
            id=self.file_id(file.place),
            kind=kind,
            name=name,
            source=self.name,
            description=description,
            body=body.strip(),
            path=file.path,
            tags=tags(fields),
            extra=extra(fields),
            policy=policy,
        )
        return item, problems

    def resume(self, memory: Memory, is_late: Callable[[], bool]) -> None:
        """Let the next scan read only the files changed since an earlier process read them.

        Args:
            memory: The results of that process.
            is_late: Whether the time for reading files is up.
        """
        self._readings.resume(memory, is_late)

    def memory(self) -> Memory:
        """The memory of the last scan; without files if it failed."""
        return Memory(self._seen) if self._is_unread else self._readings.memory(self._seen)

    def deciding_files(self) -> Iterable[str]:
        """The files besides the wanted ones that the last scan depended on; they may be missing."""
        return self._ignored.files()

    def chosen(self, files: list[Found]) -> list[Found]:
        """Select the files to read from those with a wanted name: one for each item."""
        places = {file.place for file in files}
        return [
            file
            for file in files
            if next(one for one in self._alternatives(file.place) if one in places) == file.place
        ]

    @override
    def scan(self) -> Scan:
        self.check_place()
        self._noted = []
        self._follow_disk()
        try:
            for _ in range(MAX_SCANS):
                passed = self._scan()
                # Files reread during a pause may have an older state in this scan.
                if not self._noted or self._rescan(self._noted) is not None:
                    break
                self._noted = []
            return self._found(passed)
        except BaseException:  # the contents may be incomplete, so a rescan would be wrong
            self._contents = None
            raise
        finally:
            self._noted = None

    def _scan(self) -> dict[str, str]:
        """Walk the folders and read the files. Returns the reasons of passed-over places."""
        self._seen = FolderState({str(self.path): settled_time(str(self.path))})
        self._is_unread = True
        walk = self._walk()
        without_items = self.without_items(walk)
        self._is_unread = False
        chosen = [file for file in self.chosen(walk.files) if not self._is_of_inner(file.place)]
        ignored = {file.place for file in chosen if self._is_ignored(file.place)}
        files = [file for file in chosen if file.place not in ignored]
        readings = self._readings.read(files, self._read_light, self._pause)
        if self._contents is None:
            self._contents = FolderContents(self.same_id)
        self._contents.replace(
            {file.place: reading for file, reading in zip(files, readings, strict=True)}
        )
        self._walked = Walked(self.path, walk)
        # Missing files need no signature: creating one changes its folder.
        deciding: dict[str, Signature | None] = {
            path: one for path in self.deciding_files() if (one := settled_signature(path))
        }
        problems = (*walk.problems, *self._ignored.problems)
        self._seen = FolderState(walk.times(), deciding, problems)
        passed = {at: reason for at, reason in walk.passed_over.items() if at not in self._inner}
        return passed | without_items | dict.fromkeys(ignored, IGNORED)

    def _found(self, passed: dict[str, str]) -> Scan:
        assert self._contents is not None
        assert self._walked is not None
        hidden = {place: one.hidden for place, one in self._contents.readings.items() if one.hidden}
        passed = passed | hidden
        return msgspec.structs.replace(
            self.summary(self._contents, self._walked),
            items=[one for one in self._contents.entries() if isinstance(one, Item)],
            passed_over=[
                PassedOver(str(self.path / place), passed[place]) for place in sorted(passed)
            ],
        )

    def summary(self, contents: FolderContents, walked: Walked) -> Scan:
        """The scan of the whole source, without the items."""
        unread, unread_under, postponed = set(), [], set()
        for place in walked.unlisted:
            unread.add(f"{self.name}/{place}")
            unread_under.append(f"{self.name}/{place}/" if place else f"{self.name}/")
        for place, reading in contents.marked():
            if reading.postponed:
                postponed.add(walked.path(place))
            if reading.broken or (reading.postponed and not reading.known):
                unread.add(self.file_id(place))
                unread.update(one.id for one in reading.known)
                if self.many_in_a_file:
                    unread_under.append(f"{self.file_id(place)}/")
        return Scan(
            items=[],
            problems=[*walked.problems, *self._ignored.problems, *contents.problems()],
            unread=frozenset(unread),
            unread_under=tuple(unread_under),
            unchanged=frozenset(contents.unchanged),
            postponed=frozenset(postponed),
        )

    @override
    def rescan(self, paths: Sequence[str]) -> Change | None:
        if self._noted is not None:
            self._noted += paths  # the running scan rereads them at its end
        return self._rescan(paths)

    def _rescan(self, paths: Sequence[str]) -> Change | None:
        contents, walked = self._contents, self._walked
        if contents is None or walked is None or not walked.is_there:
            return None
        try:
            self.check_place()
            units = self._units(walked, paths)
            walks = [(unit, self._walk(unit)) for unit in units or ()]
        except (OSError, SourceError):
            return None
        if units is None or not all(walked.may_replace(*one) for one in walks):
            return None
        touched = set().union(*(walked.replace(*one) for one in walks))
        offered = contents.change(self._read_again(contents, walked, touched))
        return Change(
            items=[one for one in offered.values() if isinstance(one, Item)],
            gone=frozenset(item for item, one in offered.items() if one is None),
            summary=self.summary(contents, walked),
        )

    def _units(self, walked: Walked, paths: Sequence[str]) -> list[str] | None:
        """The places to walk again for changed paths; None if a full scan is needed."""
        units = set()
        for path in paths:
            place = self._place(path)
            if place is None:
                place = os.path.relpath(path, self.path)
            # The event may spell the name differently from its folder.
            for one in {place, as_listed(str(self.path), place)}:
                folder, _, name = one.rpartition("/")
                unit = walked.unit(folder if self.decides(name) else one)
                if unit in ("", ".", ".."):
                    return None
                units.add(unit)
        found = outermost(units)
        for unit in found:
            self._ignored.forget([unit, *walked.folders.under(unit)])
        return found

    def _read_again(
        self, contents: FolderContents, walked: Walked, places: set[str]
    ) -> dict[str, Reading | None]:
        """Reread files; None for those that are no longer read."""
        concerned = {other for place in places for other in self._alternatives(place)}
        files = sorted(walked.found(place) for place in concerned if place in walked.files)
        kept = {
            file.place: file
            for file in self.chosen(files)
            if not (self._is_of_inner(file.place) or self._is_ignored(file.place))
        }
        readings: dict[str, Reading | None] = {}
        for place in sorted(concerned):
            if place in kept:
                readings[place] = self._readings.read_again(kept[place], self._read_light)
            elif place in contents.readings:
                self._readings.forget(walked.path(place))
                readings[place] = None
        return readings

    def _alternatives(self, place: str) -> list[str]:
        """The places of all files for the same item, in order of precedence."""
        folder = place[: place.rfind("/") + 1]
        return [folder + name for name in self.item_files] or [place]

    def _pause(self) -> None:
        if self.on_pause is not None:
            self.on_pause()

    def _walk(self, unit: str = "") -> Walk:
        """Walk the folders at a place."""
        if not unit:
            self._ignored = GitIgnore(self.path)
        return Walk(
            self.path,
            self.wants,
            self.passes_over,
            self._is_read_elsewhere,
            pause=lambda: None if unit else self._pause(),
            place=unit,
        )

    def _is_ignored(self, place: str) -> bool:
        return self.gitignore and self._ignored.ignores(place)

    def _is_of_inner(self, place: str) -> bool:
        """Whether an inner source reads the file at a place."""
        name = place.rpartition("/")[2]
        return any(
            is_inside(place, folder) and inner.wants(name) for folder, inner in self._inner.items()
        )

    def without_items(self, walk: Walk) -> dict[str, str]:  # noqa: ARG002 - the default is empty
        """The places that should have an item but do not, each with the reason."""
        return {}

    def _is_read_elsewhere(self, real: str) -> bool:
        return any(other.reaches(real) for other in self._others)

    def same_id(self, item: Entry, first: Entry) -> Problem:
        """The problem of an item that was left out because an earlier one has the same id."""
        message = f"This would have the id of {first.path} and was left out; rename one of the two."
        return error(item.path, message, item=item.id)

    def _read_light(self, file: Found) -> Reading:
        """Read a file, and move the texts of its items to the disk if a file for them exists."""
        reading = self._read_file(file)
        if self._texts is None:
            return reading
        return msgspec.structs.replace(reading, items=list(map(self._texts.keep, reading.items)))

    def _follow_disk(self) -> None:
        """Create the file for texts, and replace it once most of it is unused."""
        if self.disk is None:
            return
        with contextlib.suppress(OSError):  # then texts stay in memory or in the old file
            if self._texts is None:
                self._texts = TextFile(self.disk)
            elif self._contents is not None:
                entries = self._contents.entries()
                items = (one for one in entries if isinstance(one, Item))
                self._texts = self._texts.compacted(items)

    def _read_file(self, file: Found) -> Reading:
        text, problems = read_file(file, self.file_limit)
        reading = Reading(broken=True) if text is None else self.read(file, text)
        problems += reading.problems
        if not self.many_in_a_file:
            item_id = self.file_id(file.place)
            problems = [msgspec.structs.replace(one, item=item_id) for one in problems]
        return msgspec.structs.replace(reading, problems=problems)
