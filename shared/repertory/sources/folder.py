"""The base of all sources that read a folder: one scan, one parser for each file."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from typing_extensions import override

from repertory.catalogue.item import Item, Kind
from repertory.sources.entry import check_options, checked_name, source_path
from repertory.sources.reading.fields import extra, tags
from repertory.sources.reading.files import FILE_LIMIT, Found, read_text, walk
from repertory.sources.reading.policy import authored
from repertory.sources.reading_cache import Reading, ReadingCache
from repertory.sources.source import Problem, Scan, Source, WatchedFolder, error, warning


class FolderSource(Source):
    """A folder, some of whose files offer items.

    A subclass selects the files (``wants``, ``enters``), gives them ids (``file_id``) and parses
    them (``read``).
    """

    file_limit: ClassVar[int] = FILE_LIMIT
    # Whether a file offers several items, whose ids then start with the file's id and a slash.
    many_in_a_file: ClassVar[bool] = False

    def __init__(self, *, name: str, path: Path | str) -> None:
        self.name = checked_name(name)
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - without .., links kept
        self.location = str(self.path)
        self.folder = WatchedFolder(self.path, self.concerns)
        self._readings = ReadingCache()

    @classmethod
    def build(cls, entry: Mapping[str, Any], base: Path) -> list[Source]:
        """Build the source of a configuration entry with a ``path`` and an optional ``name``.

        Raises:
            ConfigurationError: The entry is invalid.
        """
        check_options(entry, "name", "path")
        path = source_path(entry, base)
        return [cls(name=entry.get("name") or path.resolve().name or cls.type, path=path)]

    @override
    def identity(self) -> Mapping[str, Any]:
        return {"type": self.type, "name": self.name, "path": self.path.as_posix()}

    @override
    def is_away(self) -> bool:
        return not self.path.exists()

    def wants(self, filename: str) -> bool:
        """Whether a file of this name may offer items."""
        raise NotImplementedError

    def concerns(self, filename: str) -> bool:
        """Whether a change of a file of this name can change the scan."""
        return self.wants(filename)

    def enters(self, place: str) -> bool:  # noqa: ARG002 - the default enters all
        """Whether to read a folder below the root."""
        return True

    def file_id(self, place: str) -> str:
        """The id of the item of the file at a place."""
        return f"{self.name}/{place}"

    def read(self, file: Found, text: str) -> Reading:
        """Parse one file. The result depends only on the text and the file's place."""
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
        item_id = self.file_id(file.place)
        policy, problems = authored(fields, file.path, item_id)
        item = Item(
            id=item_id,
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

    def chosen(self, files: list[Found]) -> list[Found]:
        """Select the files to read from those with a wanted name."""
        return files

    @override
    def scan(self) -> Scan:
        walked = walk(self.path, self.wants, self.enters)
        items: dict[str, Item] = {}
        problems = list(walked.problems)
        unread: set[str] = set()
        unread_under = []
        for place in walked.unlisted:
            unread.add(f"{self.name}/{place}")
            unread_under.append(f"{self.name}/{place}/" if place else f"{self.name}/")
        files = self.chosen(walked.files)
        for file, reading in zip(files, self._readings.read(files, self._read_file), strict=True):
            problems += reading.problems
            if reading.broken:
                unread.add(self.file_id(file.place))
                if self.many_in_a_file:
                    unread_under.append(f"{self.file_id(file.place)}/")
            for item in reading.items:
                if (first := items.setdefault(item.id, item)) is not item:
                    problems.append(self.same_id(item, first))
        problems += _shadowed(items.values())
        return Scan(
            items=list(items.values()),
            problems=problems,
            unread=frozenset(unread),
            unread_under=tuple(unread_under),
        )

    def same_id(self, item: Item, first: Item) -> Problem:
        """Return the problem of an item that was left out because an earlier one has its id."""
        message = f"This would have the id of {first.path} and was left out; rename one of the two."
        return error(item.path, message, item=item.id)

    def _read_file(self, file: Found) -> Reading:
        text, problems = read_text(file.path, self.file_limit)
        if text is None:
            return Reading(problems=problems, broken=True)
        reading = self.read(file, text)
        return msgspec.structs.replace(reading, problems=problems + reading.problems)


def _shadowed(items: Iterable[Item]) -> list[Problem]:
    """Return a warning for each skill that has the name of an earlier one."""
    first: dict[str, Item] = {}
    problems = []
    for item in items:
        earlier = first.setdefault(item.name, item)
        if item.kind is Kind.SKILL and earlier is not item:
            message = (
                f"The skill {item.name!r} is shadowed by {earlier.id} ({earlier.path}); both are "
                "found, but rename one of them."
            )
            problems.append(warning(item.path, message, item=item.id))
    return problems
