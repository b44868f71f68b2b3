"""An index of skills in its own folder, written and searched with the caller's embeddings."""

import threading
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Literal, Self, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import Kind, item_key, point_id
from repertory.errors import StoreError, UsageError
from repertory.index.edge import EdgeStore
from repertory.index.edge_collection import EdgeCollection
from repertory.index.vectors import Match, Point, nearest
from repertory.text import is_clean

SkillSource = Literal["python", "markdown", "builtin"]

LOCK_TIMEOUT_S = 1.0
MAX_ID_LENGTH = 1_000  # characters
MAX_DIMENSION = 65_536

_COLLECTION = "skills_"  # followed by the dimension
_ANY_REVISION = 2**53


class SkillSearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """One skill found.

    Attributes:
        score: The cosine of the skill's embedding and the query's, 0…1; a negative cosine is 0.
    """

    skill_id: str
    name: str
    description: str
    source: SkillSource
    score: float


class StoredSkill(msgspec.Struct, frozen=True, kw_only=True):
    """One stored skill.

    Attributes:
        origin: The source that a rebuild read it from; empty for a skill added by ``index_skill``.
        digest: The digest of the embedded text and the model; empty like ``origin``.
    """

    skill_id: str
    name: str
    description: str
    source: SkillSource
    origin: str = ""
    digest: str = ""


class SkillDiscoveryIndex:
    """Skills by their embeddings, in a folder. A context manager; thread-safe.

    One process at a time can use it. The first embedding sets the dimension until the index is
    empty again. Every method raises ``StoreError`` if the folder cannot be used, ``StoreBusyError``
    if another process uses it, and ``StoreCorruptError`` if its data cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store = EdgeStore(path, LOCK_TIMEOUT_S)
        self._collection: EdgeCollection | None = None
        self._is_closed = False
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open the index in a folder, which is created if it is missing."""
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
        """Flush and release the folder. Closing twice is allowed."""
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
        """Add or replace a skill. Rebuilds leave skills added this way unchanged.

        Args:
            skill_id: Its unique id; a skill with that id is replaced.
            name: Its name for people.
            description: What it does.
            source: Its kind.
            embedding: The embedding of its text; it is scaled to unit length.

        Raises:
            UsageError: An argument is invalid, or the index has another dimension.
        """
        if not all(isinstance(text, str) for text in (skill_id, name, description)):
            raise UsageError("The id, the name and the description of a skill must be texts.")
        if not (0 < len(skill_id) <= MAX_ID_LENGTH and is_clean(skill_id)):
            raise UsageError(
                f"The skill id {skill_id[:100]!r} is invalid; give 1 to {MAX_ID_LENGTH:,} "
                "characters that can be shown."
            )
        if source not in get_args(SkillSource):
            known = ", ".join(get_args(SkillSource))
            raise UsageError(f"The source {source!r} of a skill is not one of {known}.")
        entry = StoredSkill(skill_id=skill_id, name=name, description=description, source=source)
        self.write([entry], _unit(embedding)[np.newaxis])

    def remove_skill(self, skill_id: str) -> None:
        """Remove a skill; a missing one is ignored."""
        if self.is_indexed(skill_id):  # the store must not see an invalid id
            self.remove([skill_id])

    def search(
        self, embedding: Sequence[float] | NDArray[np.floating], limit: int
    ) -> list[SkillSearchResult]:
        """Return the skills nearest to a query's embedding, best first, ties by id.

        Raises:
            UsageError: The limit is not a positive integer, the embedding is invalid, or its
                dimension differs.
        """
        if not isinstance(limit, Integral) or limit < 1:
            raise UsageError(f"limit is {limit!r}; it must be a whole number of at least 1.")
        vector = _unit(embedding)
        with self._lock:
            collection = self._existing()
            if collection is None or not collection.count():
                return []
            self._check_length(len(vector))
            # All ties with the last result are needed, because ids break ties.
            matches = nearest(
                collection,
                vector,
                min(2 * limit, collection.count() + 1),
                lambda found: _score(found[-1]) < _score(found[limit - 1]),
            )
            records = collection.records([match.key for match in matches])
        scores = {match.key: _score(match) for match in matches}
        results = [
            msgspec.convert({**record, "score": scores[item_key(skill_id)]}, SkillSearchResult)
            for skill_id, record in records.items()
        ]
        return sorted(results, key=lambda one: (-one.score, one.skill_id))[:limit]

    def is_indexed(self, skill_id: str) -> bool:
        """Whether a skill with that id exists."""
        with self._lock:
            collection = self._existing()
            return collection is not None and any(collection.states([skill_id]))

    def indexed_count(self) -> int:
        """The number of skills."""
        with self._lock:
            collection = self._existing()
            return 0 if collection is None else collection.count()

    @property
    def dimension(self) -> int | None:
        """The dimension of the embeddings; None while the index is empty."""
        with self._lock:
            collection = self._existing()
            if collection is None or not collection.count():
                return None
            return int(collection.name.removeprefix(_COLLECTION))

    def entries(self) -> list[StoredSkill]:
        """All stored skills, unordered."""
        with self._lock:
            collection = self._existing()
            if collection is None:
                return []
            return [msgspec.convert(record, StoredSkill) for record in collection.scan()]

    def write(self, entries: Sequence[StoredSkill], vectors: NDArray[np.float32]) -> None:
        """Add or replace skills, each with its row of ``vectors``, of unit length.

        Raises:
            UsageError: The index has another dimension.
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
        """Remove skills; missing ones are ignored."""
        with self._lock:
            collection = self._existing()
            if collection is not None:
                collection.delete_items(skill_ids, before=_ANY_REVISION)

    def _existing(self) -> EdgeCollection | None:
        """The collection; None before the first write."""
        if self._is_closed:
            raise StoreError(f"The skill index in {self._path} has been closed: open it again.")
        if self._collection is None:
            names = [one for one in self._store.collections() if one.startswith(_COLLECTION)]
            self._collection = self._store.open(names[0]) if names else None
        return self._collection

    def _for_length(self, length: int) -> EdgeCollection:
        """The collection for a dimension; an empty one of another dimension is replaced."""
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


def _score(match: Match) -> float:
    return min(1.0, max(0.0, match.score))


def _unit(embedding: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float32]:
    """Scale an embedding to unit length.

    Raises:
        UsageError: It is not a sequence of finite numbers, or all of them are 0.
    """
    try:
        vector = np.asarray(embedding, np.float64)
    except (TypeError, ValueError) as exc:
        raise UsageError("The embedding must be a sequence of numbers.") from exc
    if vector.ndim != 1 or not 0 < vector.size <= MAX_DIMENSION:
        raise UsageError(f"The embedding must be one sequence of 1 to {MAX_DIMENSION:,} numbers.")
    largest = np.abs(vector).max()
    if not (np.isfinite(largest) and largest > 0):
        raise UsageError("The embedding holds a number that is not finite, or only zeros.")
    vector = vector / largest  # squares of very large or small numbers would overflow
    return np.asarray(vector / np.linalg.norm(vector), np.float32)
