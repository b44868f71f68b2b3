"""Build items, files, sources, and writers for tests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
from typing_extensions import override

from repertory.catalogue.item import Item, Kind
from repertory.catalogue.policy import Policy
from repertory.coordination.ports import Coordination, in_process
from repertory.embedding.engine import EmbeddingEngine
from repertory.embedding.words import WordsEngine
from repertory.errors import ModelError, SourceError
from repertory.index.cache import VectorCache
from repertory.index.vectors import VectorStore
from repertory.indexing.writer import Writer
from repertory.sources.source import Problem, Scan, Source
from repertory.values import NAMESPACE

DEEP_JSON = b'{"a": ' + b"[" * 10_000  # readers raise a RecursionError


def no_model() -> EmbeddingEngine:
    """An engine factory that raises ModelError, as when no model is installed."""
    raise ModelError("There is no model.")


def tool(item_id: str, description: str = "", **fields: Any) -> Item:  # noqa: ANN401 - fields of any type
    """A tool with an id of the form ``server__name``; ``fields`` override its other fields."""
    server, _, name = item_id.partition("__")
    item = Item(
        id=item_id,
        kind=Kind.TOOL,
        name=name,
        source=server,
        server=server,
        description=description,
    )
    return msgspec.structs.replace(item, **fields)


def skill(name: str, description: str = "", body: str = "", **policy: object) -> Item:
    """A skill of the source ``team``, with a policy if ``policy`` has fields."""
    return Item(
        id=f"team/{name}",
        kind=Kind.SKILL,
        name=name,
        source="team",
        description=description or f"Of {name}",
        body=body,
        policy=msgspec.convert(SimpleNamespace(**policy), Policy, from_attributes=True)
        if policy
        else None,
    )


def write(file: Path, text: str = "Some words.") -> Path:
    """Write a file and create its parent folders."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


def write_skill(project: Path, name: str, description: str, body: str = "Steps follow.\n") -> Path:
    """Write a skill below a project's skills folder."""
    text = f"---\nname: {name}\ndescription: {description}\n---\n{body}"
    return write(project / "skills" / name / "SKILL.md", text)


def save_skill(project: Path, name: str, description: str, body: str = "") -> Path:
    """Save a skill atomically, by renaming a temporary file, as editors do."""
    text = f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"
    half = write(project / "skills" / name / "SKILL.md.tmp", text)
    return half.replace(half.with_suffix(""))


def write_shop(project: Path) -> Path:
    """Fill a project with three skills and a document."""
    write_skill(project, "key-rotation", "Rotate API keys without downtime")
    write_skill(project, "release-notes", "Write release notes from merged pull requests")
    write_skill(project, "postmortem", "Write up an incident: timeline, causes, actions")
    (project / "README.md").write_text("# Shop\n\nThe web shop and its checkout.\n")
    return project


class Folder(Source):
    """A source without files: the test sets its items.

    Attributes:
        items: The items by name.
        problems: The problems that a scan reports.
        is_unreadable: Whether scanning fails.
        why: The message of the error if scanning fails.
    """

    type = "skills"
    location = "nowhere"
    why = "The folder is unreadable."
    problems: Sequence[Problem] = ()

    def __init__(self, name: str = "team", *items: str) -> None:
        self.name = name
        self.items: dict[str, Item] = {}
        self.is_unreadable = False
        for item in items:
            self.write(item)

    @override
    def identity(self) -> Mapping[str, Any]:
        return {"type": self.type, "name": self.name}

    @override
    def scan(self) -> Scan:
        if self.is_unreadable:
            raise SourceError(self.why)
        items = [self.items[name] for name in sorted(self.items)]
        return Scan(items=items, problems=[*self.problems])

    def write(self, name: str, description: str = "", body: str = "") -> None:
        """Save an item."""
        item = skill(name, description, body)
        self.items[name] = msgspec.structs.replace(item, id=f"{self.name}/{name}", source=self.name)

    def delete(self, name: str) -> None:
        """Delete an item, if it exists."""
        self.items.pop(name, None)


def indexed_ids(store: VectorStore, alias: str) -> list[str]:
    """The sorted ids of the items in an alias's collection; empty if the alias is missing."""
    name = store.alias(alias)
    if name is None:
        return []
    with store.open(name) as collection:
        return sorted(state.item for state in collection.states())


def coordination(root: Path, **ports: object) -> Coordination:
    """In-memory coordination, with some ports replaced by the test's own."""
    return msgspec.structs.replace(in_process(root), **ports)


def words_writer(
    store: VectorStore,
    cache: VectorCache,
    parts: Coordination,
    engine: Callable[[], EmbeddingEngine] = lambda: WordsEngine("a test"),
) -> Writer:
    """A writer that by default indexes words only, without vectors."""
    return Writer(
        store=store,
        engine=engine,
        cache=lambda _model: cache,
        coordination=parts,
        active=NAMESPACE,
        notify=lambda _message: None,
    )
