"""The corpus of a labelled set for `eval`: items with their ids, as JSON lines."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
from typing_extensions import override

from repertory.catalogue.item import Item, Kind
from repertory.errors import SourceError
from repertory.sources.entry import check_options, checked_name, source_path
from repertory.sources.reading.structured import is_fit, plain_object
from repertory.sources.source import Problem, Scan, Source, WatchedFolder, error, warning
from repertory.system.untrusted_files import read_within
from repertory.text import UNFIT, clean, is_clean

FILE_LIMIT = 64 << 20  # bytes
LINE_LIMIT = 1 << 20  # bytes; as objects, a line can take a hundred times this memory
MAX_DEFECTS = 1_000  # lines that are no items
MAX_ID_LENGTH = 500  # characters


class _Row(msgspec.Struct, frozen=True):
    id: str
    kind: Kind
    name: str
    description: str | None = None
    server: str | None = None
    schema: dict[str, Any] | None = None
    body: str | None = None


class Corpus(Source):
    """The items of a ``corpus.jsonl``."""

    type = "corpus"

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.location = self.file = str(path)
        self.folder = WatchedFolder(path)

    @override
    def identity(self) -> Mapping[str, Any]:
        return {"type": self.type, "name": self.name, "path": str(self.path)}

    @override
    def scan(self) -> Scan:
        try:
            content = read_within(str(self.path), self.within, FILE_LIMIT)
        except OSError as exc:
            raise SourceError(f"{self.path} cannot be read: {exc.strerror}.") from exc
        items: dict[str, Item] = {}
        defects: list[Problem] = []
        problems: list[Problem] = []
        for number, line in enumerate(BytesIO(content), start=1):
            if not line.strip():
                continue
            if len(defects) > MAX_DEFECTS:
                raise SourceError(
                    f"{self.path} was not read: more than {MAX_DEFECTS:,} of its lines are no "
                    f"items. {defects[0].message}"
                )
            try:
                row, schema = _read(line)
            except ValueError as exc:
                defects.append(error(str(self.path), str(exc), line=number))
                continue
            if row.id in items:
                message = f"The id {row.id!r} is already used; this line is left out."
                defects.append(error(str(self.path), message, line=number, item=row.id))
                continue
            texts = row.name, row.description or "", row.server or "", row.body or ""
            if not is_fit((*texts, row.schema)):
                message = f"The item has {UNFIT}; they were left out."
                problems.append(warning(str(self.path), message, line=number, item=row.id))
            name, description, server, body = map(clean, texts)
            items[row.id] = Item(
                id=row.id,
                kind=row.kind,
                name=name,
                source=self.name,
                description=description,
                server=server,
                body=body,
                input_schema=schema,
            )
        return Scan(items=list(items.values()), problems=[*defects, *problems])


def _read(line: bytes) -> tuple[_Row, dict[str, Any] | None]:
    """Parse a line, and its schema with plain values; ValueError says why it is not an item."""
    if len(line) > LINE_LIMIT:
        raise ValueError(f"This line has more than {LINE_LIMIT:,} bytes; shorten it.")
    try:
        row = msgspec.json.decode(line, type=_Row)
        schema = None if row.schema is None else plain_object(row.schema)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise ValueError(f"This line is not an item: {str(exc).lower()}.") from exc
    if not _is_id(row.id):
        raise ValueError(
            f"The id of this line cannot be used; give one of 1 to {MAX_ID_LENGTH} characters on "
            "one line, none of them a control or invisible character."
        )
    return row, schema


def _is_id(text: str) -> bool:
    """Whether a text is valid as an id, which must fit on one line."""
    is_one_line = text.splitlines() == [text] and "\t" not in text
    return is_one_line and len(text) <= MAX_ID_LENGTH and bool(text.strip()) and is_clean(text)


def build(entry: Mapping[str, Any], base: Path) -> list[Source]:
    """Build the corpus of an entry's ``path``."""
    check_options(entry, "name", "path")
    path = source_path(entry, base)
    return [Corpus(checked_name(entry.get("name", path.parent.name)), path)]
