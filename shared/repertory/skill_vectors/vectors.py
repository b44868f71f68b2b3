"""The vectors of skill files in a sandbox: written one by one, searched by cosine."""

import contextlib
import hashlib
import logging
import os
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from repertory.catalogue.item import Kind, item_key, point_id
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import Model
from repertory.errors import ModelError, StoreCorruptError, StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import (
    NO_FILTER,
    Collection,
    Filter,
    Point,
    Searched,
    State,
    VectorStore,
    nearest,
)
from repertory.indexing.collection_names import model_slug, sandbox_name
from repertory.search.engine import SearchEngine
from repertory.search.query import check_text
from repertory.skill_vectors.parts import parts
from repertory.skill_vectors.sandbox import Sandbox, SandboxFile
from repertory.values import NAMESPACE
from repertory.wire import SkillMatch

MIN_SCORE = 0.5
RECIPE = 1  # increment it after changes that make the stored vectors invalid
FIRST_LIMIT = 200  # points in the first request of a search

_log = logging.getLogger(__name__)


class SkillVectors:
    """The vectors of a sandbox's skill files. Thread-safe.

    Each sandbox and model has its own collection. It is opened for each call (about 10 ms), so that
    other processes can use an embedded store between two calls.

    Args:
        sandbox: The folder whose files may be read.
        store: Returns the store of the vectors.
        embedding: Returns the loaded engine; may raise ModelError.
        namespace: The prefix of the collections' names.
    """

    def __init__(
        self,
        sandbox: Path,
        store: Callable[[], VectorStore],
        embedding: Callable[[], EmbeddingEngine],
        namespace: str = NAMESPACE,
    ) -> None:
        self._namespace = namespace
        self._sandbox = Sandbox(sandbox)
        self._store = store
        self._embedding = embedding
        # Weak: a replaced index must be freed.
        self._known: tuple[weakref.ref[KeywordIndex] | None, dict[str, list[str]]] = (None, {})

    def search(
        self, query: str, engine: SearchEngine | None, *, with_written: bool = True
    ) -> list[SkillMatch]:
        """Return the skill files whose cosine with the query is at least ``MIN_SCORE``, best first.

        Both files written by ``update`` and the catalogue's skills in the sandbox are searched; for
        a file that is both, the newer vectors count. A blank query finds nothing. No file is read.

        Args:
            query: The query.
            engine: The catalogue's search; None if nothing is indexed.
            with_written: Whether to search the files written by ``update``, too.

        Raises:
            UsageError: The query is too long.
            ModelError: The query cannot be embedded.
            StoreError: The vectors cannot be read.
        """
        if not query.strip():
            return []
        check_text(query)
        with _embedding_for("SearchSkills"):
            embedding = self._embedding()
            vector = embedding.embed_query(query)
        scores = self._catalogued(vector, embedding.model, engine)
        if with_written and (collection := self._existing(embedding.model)):
            with collection:
                near = _near(collection, vector)
                found = {path: near[item_key(path)] for path in collection.records(list(near))}
                written = list(collection.states([*{*scores, *found}]))
            newer = self._newer(written, embedding.model, engine)
            for state in written:
                if state.item not in newer:
                    scores.pop(state.item, None)
            scores |= {path: score for path, score in found.items() if path not in newer}
        matches = [
            SkillMatch(path=place, score=round(score, 4))
            for path, score in scores.items()
            if (place := self._sandbox.place(path))
        ]
        return sorted(matches, key=lambda match: (-match.score, match.path))

    def update(self, filepath: str) -> None:
        """Read a whole file of the sandbox and store its vector under its absolute path.

        If the file no longer exists, its stored vectors are removed.

        Raises:
            UsageError: The path leaves the sandbox, or the file cannot be read.
            ModelError: The text cannot be embedded.
            StoreError: The vector cannot be stored.
        """
        seen = _now()
        if gone := self._sandbox.missing(filepath):
            self._forget(gone)
        file = self._sandbox.read(filepath)
        digest = hashlib.sha256(file.text.encode()).hexdigest()
        with _embedding_for("VectorUpdate"):
            embedding = self._embedding()
            if self._holds(embedding.model, file, digest):
                return
            texts = [file.text, *parts(file.path, file.text, embedding.model.max_tokens)]
            vectors = embedding.embed_texts(texts)
        with self._open_or_create(embedding.model) as collection:
            _write(collection, file.path, digest, vectors, seen)

    def _catalogued(
        self, vector: Vectors, model: Model, engine: SearchEngine | None
    ) -> dict[str, float]:
        """The scores of the catalogue's matching skills in the sandbox, by absolute path."""
        if (parts := _parts_of(engine, model)) is None:
            return {}
        collection, index = parts
        scores: dict[str, float] = {}
        near = _near(collection, vector, Filter(kinds=(Kind.SKILL,)))
        rows = index.rows_of([*near])
        for key, score in near.items():
            path = index.entry(rows[key]).path if key in rows else None
            place = None if path is None else self._sandbox.place(path)
            if place:  # the first of several skills in a file is the best
                scores.setdefault(self._sandbox.path(place), score)
        return scores

    def _newer(
        self, written: Sequence[State], model: Model, engine: SearchEngine | None
    ) -> set[str]:
        """The paths of files edited since ``update``, whose edits the catalogue has read.

        The file's time must be newer as well, because a job of the catalogue may be newer than the
        text in it.
        """
        if not written or (parts := _parts_of(engine, model)) is None:
            return set()
        collection, index = parts
        skills = self._skills(index)
        ids = [item for one in written for item in skills.get(one.item, ())]
        times = {one.item: one.revision * 1_000 for one in collection.states(ids)}
        return {
            one.item
            for one in written
            if any(times.get(item, 0) > one.revision for item in skills.get(one.item, ()))
            and _changed_at(one.item) > one.revision
        }

    def _skills(self, index: KeywordIndex) -> dict[str, list[str]]:
        """The ids of the catalogue's skills in the sandbox, by absolute path."""
        known, skills = self._known
        if known is None or known() is not index:
            skills = {}
            for entry in index.all():
                if entry.kind is Kind.SKILL and (place := self._sandbox.place(entry.path)):
                    skills.setdefault(self._sandbox.path(place), []).append(entry.id)
            self._known = weakref.ref(index), skills
        return skills

    def _holds(self, model: Model, file: SandboxFile, digest: str) -> bool:
        """Whether the stored vectors are those of this text and newer than the file."""
        with contextlib.suppress(StoreCorruptError):
            if collection := self._existing(model):
                with collection:
                    return any(
                        one.content_hash == digest and one.revision > file.changed
                        for one in collection.states([file.path])
                    )
        return False

    def _forget(self, path: str) -> None:
        """Remove the stored vectors of a file."""
        with _embedding_for("VectorUpdate"):
            collection = self._existing(self._embedding().model)
        if collection:
            with collection:
                known = next(collection.states([path]), None)
                # Also a revision from before the clock was set back.
                before = max(_now(), known.revision if known else 0) + 1
                collection.delete_items([path], before=before)

    def _name(self, model: Model) -> str:
        return sandbox_name(self._namespace, self._sandbox.root, model.slug, RECIPE)

    def _existing(self, model: Model) -> Collection | None:
        """Open the collection; None if nothing was written yet."""
        store, name = self._store(), self._name(model)
        return store.open(name) if name in store.collections() else None

    def _open_or_create(self, model: Model) -> Collection:
        """Open the collection; create it if it is missing or corrupt."""
        store, name = self._store(), self._name(model)
        try:
            if collection := self._existing(model):
                return collection
        except StoreCorruptError:  # callers can write the files again
            _log.exception("sandbox_corrupt", extra={"collection": name})
            store.drop(name)
        try:
            return store.create(name, model.dimension)
        except StoreError:
            if name not in store.collections():
                raise
            return store.open(name)  # another process has just created it


def _parts_of(engine: SearchEngine | None, model: Model) -> tuple[Searched, KeywordIndex] | None:
    """The vectors of a catalogue and its items; None if it has no vectors of this model."""
    if engine is None or engine.collection is None:
        return None
    is_same = model_slug(engine.collection.name) == model.slug
    return (engine.collection, engine.keywords) if is_same else None


@contextlib.contextmanager
def _embedding_for(function: str) -> Iterator[None]:
    """Prefix the message of a ModelError as the contract specifies."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{function} embedding generation failed: {error}") from error


def _near(collection: Searched, vector: Vectors, where: Filter = NO_FILTER) -> dict[int, float]:
    """The best cosine of each item that reaches ``MIN_SCORE``, by key, best first."""
    best: dict[int, float] = {}
    for match in nearest(
        collection, vector, FIRST_LIMIT, lambda found: found[-1].score < MIN_SCORE, where
    ):
        if match.score >= MIN_SCORE:
            best.setdefault(match.key, match.score)
    return best


def _write(collection: Collection, path: str, digest: str, vectors: Vectors, seen: int) -> None:
    """Replace a file's vectors, first its own and then its parts', unless newer ones are stored.

    ``seen`` is the time at which the file was read, in microseconds.
    """
    known = next(collection.states([path]), None)
    # A clock that was set back must not prevent the write.
    revision = known.revision + 1 if known and known.revision > _now() else seen
    own, *sections = (
        Point(
            id=point_id(item_key(path), section),
            vector=vector,
            item=path,
            section=section,
            kind=Kind.SKILL,
            source="sandbox",
            content_hash=digest,
            metadata_hash=digest,
            revision=revision,
            record={},
        )
        for section, vector in zip([None, *range(len(vectors) - 1)], vectors, strict=True)
    )
    # The file's own point is last: its digest marks the file as complete.
    collection.upsert(sections)
    collection.delete_sections([path], before=revision)
    collection.upsert([own])
    for state in collection.states([path]):  # newer if another process was faster
        collection.delete_sections([path], before=state.revision)


def _changed_at(path: str) -> int:
    """When a file was last written or moved, in microseconds; 0 if it is missing."""
    try:
        status = os.stat(path)  # noqa: PTH116 - speed
    except OSError:
        return 0
    return max(status.st_mtime_ns, status.st_ctime_ns) // 1_000


def _now() -> int:
    """The time in microseconds, used as a revision; it stays below 2**53 until 2255."""
    return time.time_ns() // 1_000
