"""An index of skills in a folder of its own: written with embeddings, searched with one."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import Kind, item_key, point_id
from repertory.errors import StoreError, UsageError
from repertory.index.edge import EdgeStore
from repertory.index.edge_collection import EdgeCollection
from repertory.index.vectors import Match, Point
from repertory.text import is_clean

SkillSource = Literal["python", "markdown", "builtin"]

PATIENCE = 1.0  # seconds to wait for another process
LONGEST_ID = 1_000  # characters
LONGEST_EMBEDDING = 65_536  # numbers

_COLLECTION = "skills_"  # and how long its vectors are
_ANY_REVISION = 2**53


class SkillSearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """One skill that a search found.

    Attributes:
        score: The cosine of the skill's embedding and the query's, 0 where it is negative: 0…1,
            higher is better.
    """

    skill_id: str
    name: str
    description: str
    source: SkillSource
    score: float


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One skill as it is stored.

    Attributes:
        origin: The name of the source that a rebuild read it from; empty for one that was indexed
            by hand.
        digest: Of what was embedded, and by which model; empty likewise.
    """

    skill_id: str
    name: str
    description: str
    source: SkillSource
    origin: str = ""
    digest: str = ""


class SkillDiscoveryIndex:
    """Skills by their embeddings, in a folder of its own. A context manager; threads may share it.

    One process at a time can use it. How long its embeddings are is settled by the first one, until
    the index is empty again. Every method raises ``StoreError`` when the folder cannot be used,
    ``StoreBusyError`` when another process does, and ``StoreCorruptError`` when what is stored
    there cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store = EdgeStore(path, PATIENCE)
        self._collection: EdgeCollection | None = None
        self._is_closed = False
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open the index in a folder, which is made when it is missing."""
        index = cls(Path(path))
        try:
            index._path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as exc:
            reason = getattr(exc, "strerror", None) or exc
            raise StoreError(
                f"The folder {path} cannot be made ({reason}); name one that can be written."
            ) from exc
        index._existing()
        return index

    def close(self) -> None:
        """Flush and let go. Closing twice is allowed."""
        with self._lock:
            self._is_closed = True
            if self._collection is not None:
                self._collection.close()
                self._collection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def index_skill(
        self,
        skill_id: str,
        name: str,
        description: str,
        source: SkillSource,
        embedding: Sequence[float] | NDArray[np.floating],
    ) -> None:
        """Index a skill, or index it anew. A rebuild leaves what was indexed so as it is.

        Args:
            skill_id: What it is known by; an entry of that id is overwritten.
            name: What a person calls it.
            description: What it does.
            source: What sort of skill it is.
            embedding: Of what it does, of any length but zero; it is scaled to unit length.

        Raises:
            UsageError: The id, a text, the source or the embedding cannot be one, or the embeddings
                here are of another length.
        """
        if not all(isinstance(text, str) for text in (skill_id, name, description)):
            raise UsageError("The id, the name and the description of a skill must be texts.")
        if not (0 < len(skill_id) <= LONGEST_ID and is_clean(skill_id)):
            raise UsageError(
                f"The skill id {skill_id[:100]!r} cannot be one; give 1 to {LONGEST_ID:,} "
                "characters that can be shown."
            )
        if source not in get_args(SkillSource):
            known = ", ".join(get_args(SkillSource))
            raise UsageError(f"The source {source!r} is none that a skill can have: {known}.")
        entry = Entry(skill_id=skill_id, name=name, description=description, source=source)
        self.write([entry], _unit(embedding)[np.newaxis])

    def remove_skill(self, skill_id: str) -> None:
        """Remove a skill; one that is not there is passed over."""
        if self.is_indexed(skill_id):  # an id that cannot be one would trouble the store
            self.remove([skill_id])

    def search(
        self, embedding: Sequence[float] | NDArray[np.floating], limit: int
    ) -> list[SkillSearchResult]:
        """The skills nearest to a query's embedding, best first, of equals by their ids.

        Raises:
            UsageError: The limit is below 1, or the embedding cannot be one, or is of another
                length than those here.
        """
        if limit < 1:
            raise UsageError(f"limit is {limit}; it must be at least 1.")
        vector = _unit(embedding)
        with self._lock:
            collection = self._existing()
            if collection is None or not collection.count():
                return []
            self._check_length(len(vector))
            matches = _nearest(collection, vector, limit)
            records = collection.records([match.key for match in matches])
        scores = {match.key: _score(match) for match in matches}
        results = [
            msgspec.convert({**record, "score": scores[item_key(skill_id)]}, SkillSearchResult)
            for skill_id, record in records.items()
        ]
        return sorted(results, key=lambda one: (-one.score, one.skill_id))[:limit]

    def is_indexed(self, skill_id: str) -> bool:
        """Whether there is a skill of that id."""
        with self._lock:
            collection = self._existing()
            return collection is not None and any(collection.states([skill_id]))

    def indexed_count(self) -> int:
        """How many skills there are."""
        with self._lock:
            collection = self._existing()
            return 0 if collection is None else collection.count()

    @property
    def dimension(self) -> int | None:
        """How long the embeddings are; None while there are none."""
        with self._lock:
            collection = self._existing()
            if collection is None or not collection.count():
                return None
            return int(collection.name.removeprefix(_COLLECTION))

    def entries(self) -> list[Entry]:
        """Everything that is stored, in no order."""
        with self._lock:
            collection = self._existing()
            if collection is None:
                return []
            return [msgspec.convert(record, Entry) for record in collection.scan()]

    def write(self, entries: Sequence[Entry], vectors: NDArray[np.float32]) -> None:
        """Store entries over those of their ids, each with its row of ``vectors``, of unit length.

        Raises:
            UsageError: The vectors here are of another length.
        """
        with self._lock:
            self._check_length(vectors.shape[1])
            collection = self._for_length(vectors.shape[1])
            known = collection.states([entry.skill_id for entry in entries])
            revision = 1 + max((state.revision for state in known), default=0)
            collection.upsert(
                [
                    Point(
                        id=point_id(item_key(entry.skill_id)),
                        vector=vector,
                        item=entry.skill_id,
                        kind=Kind.SKILL,
                        source=entry.origin,
                        content_hash=entry.digest,
                        metadata_hash="",
                        revision=revision,
                        record=msgspec.to_builtins(entry),
                    )
                    for entry, vector in zip(entries, vectors, strict=True)
                ]
            )

    def remove(self, skill_ids: Sequence[str]) -> None:
        """Remove skills; those that are not there are passed over."""
        with self._lock:
            collection = self._existing()
            if collection is not None:
                collection.delete_items(skill_ids, before=_ANY_REVISION)

    def _existing(self) -> EdgeCollection | None:
        """The collection; None as long as nothing was ever indexed."""
        if self._is_closed:
            raise StoreError(f"The skill index in {self._path} has been closed: open it again.")
        if self._collection is None:
            names = [one for one in self._store.collections() if one.startswith(_COLLECTION)]
            self._collection = self._store.open(names[0]) if names else None
        return self._collection

    def _for_length(self, length: int) -> EdgeCollection:
        """The collection, made where there is none, or only an empty one of another length."""
        name = f"{_COLLECTION}{length}"
        collection = self._existing()
        if collection is not None and collection.name != name:
            self._collection = None
            collection.close()
            self._store.drop(collection.name)
        if self._collection is None:
            self._collection = self._store.create(name, length)
        return self._collection

    def _check_length(self, length: int) -> None:
        dimension = self.dimension
        if dimension not in (None, length):
            raise UsageError(
                f"The embedding has {length:,} numbers and those in {self._path} have "
                f"{dimension:,}; embed with one model throughout."
            )


def _nearest(collection: EdgeCollection, vector: NDArray[np.float32], limit: int) -> list[Match]:
    """The nearest skills, together with all that are as near as the last that is wanted."""
    total = collection.count()
    asked = limit
    while True:
        asked = min(2 * asked, total)
        matches = collection.search(vector, asked)
        if len(matches) < asked or asked == total:
            return matches
        if _score(matches[-1]) < _score(matches[limit - 1]):
            return matches


def _score(match: Match) -> float:
    return min(1.0, max(0.0, match.score))


def _unit(embedding: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float32]:
    """An embedding as a vector of unit length.

    Raises:
        UsageError: It cannot be one.
    """
    try:
        vector = np.asarray(embedding, np.float64)
    except (TypeError, ValueError) as exc:
        raise UsageError("The embedding must be a sequence of numbers.") from exc
    if vector.ndim != 1 or not 0 < vector.size <= LONGEST_EMBEDDING:
        raise UsageError(
            f"The embedding must be one sequence of 1 to {LONGEST_EMBEDDING:,} numbers."
        )
    largest = np.abs(vector).max()
    if not (np.isfinite(largest) and largest > 0):
        raise UsageError("The embedding holds what is no finite number, or nothing but zeros.")
    vector = vector / largest  # else squares of very large or small numbers are none
    return np.asarray(vector / np.linalg.norm(vector), np.float32)
