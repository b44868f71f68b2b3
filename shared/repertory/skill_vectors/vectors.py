"""The vectors of skill files in a sandbox: written one by one, searched by the plain cosine."""

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from repertory.catalogue.item import Kind, item_key, point_id
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import Model
from repertory.errors import ModelError, StoreCorruptError, StoreError
from repertory.index.vectors import Collection, Filter, Point, VectorStore
from repertory.indexing.collections import model_slug
from repertory.search.engine import SearchEngine
from repertory.search.query import check_text
from repertory.skill_vectors.match import SkillMatch
from repertory.skill_vectors.parts import parts
from repertory.skill_vectors.sandbox import Sandbox

LEAST_SCORE = 0.5
RECIPE = 1  # raised when files are embedded differently, so that stored vectors no longer fit
AT_ONCE = 200  # points that a search asks for first

_log = logging.getLogger(__name__)


class SkillVectors:
    """The vectors of a sandbox's skill files. Safe to use from several threads.

    Those that are written have a collection of their own, one for each sandbox and model. It is
    opened for each call, which takes a hundredth of a second, so that other processes may open it
    between two calls where the store is embedded.

    Args:
        sandbox: The folder whose files may be read.
        store: Where the vectors are.
        embedding: Gives the engine, waiting for it; raises ModelError.
    """

    def __init__(
        self,
        sandbox: Path,
        store: Callable[[], VectorStore],
        embedding: Callable[[], EmbeddingEngine],
    ) -> None:
        self._sandbox = Sandbox(sandbox)
        self._store = store
        self._embedding = embedding

    def search(self, query: str, engine: SearchEngine | None) -> list[SkillMatch]:
        """The skill files whose cosine with the query is at least ``LEAST_SCORE``, best first.

        They are those that were written here, and the catalogue's skills that lie in the sandbox;
        of a file that is both, what was written counts. A blank query finds none. No file is read.

        Args:
            query: What is looked for.
            engine: The catalogue's search; None where nothing is indexed.

        Raises:
            UsageError: The query is too long.
            ModelError: It cannot be embedded.
            StoreError: The vectors cannot be read.
        """
        if not query.strip():
            return []
        check_text(query)
        with _told_as("SearchSkills"):
            embedding = self._embedding()
            vector = embedding.embed_query(query)
        scores = self._catalogued(vector, embedding.model, engine) if engine else {}
        if collection := self._existing(embedding.model):
            with collection:
                for state in collection.states(list(scores)):
                    del scores[state.item]
                near = _near(collection, vector)
                scores |= {path: near[item_key(path)] for path in collection.records(list(near))}
        found = [
            SkillMatch(path=place, score=round(score, 4))
            for path, score in scores.items()
            if (place := self._sandbox.place(path))
        ]
        return sorted(found, key=lambda match: (-match.score, match.path))

    def update(self, filepath: str) -> None:
        """Read a file of the sandbox, whole, and store its vector under its absolute path.

        What was stored of a file that is no longer there is removed.

        Raises:
            UsageError: The path leaves the sandbox, or its file cannot be read.
            ModelError: It cannot be embedded.
            StoreError: The vector cannot be stored.
        """
        seen = _now()
        if gone := self._sandbox.missing(filepath):
            self._forget(gone)
        file = self._sandbox.read(filepath)
        digest = hashlib.sha256(file.text.encode()).hexdigest()
        with _told_as("VectorUpdate"):
            embedding = self._embedding()
            if self._holds(embedding.model, file.path, digest):
                return
            texts = [file.text, *parts(file.path, file.text, embedding.model.max_tokens)]
            vectors = embedding.embed_texts(texts)
        with self._made(embedding.model) as collection:
            _write(collection, file.path, digest, vectors, seen)

    def _catalogued(self, vector: Vectors, model: Model, engine: SearchEngine) -> dict[str, float]:
        """The catalogue's skills in the sandbox that are near enough, by their absolute paths."""
        collection, index = engine.collection, engine.keywords
        if collection is None or index is None or model_slug(collection.name) != model.slug:
            return {}
        scores: dict[str, float] = {}
        for key, score in _near(collection, vector, Filter(kinds=(Kind.SKILL,))).items():
            row = index.row_of_key.get(key)
            place = None if row is None else self._sandbox.place(index.entries[row].path)
            if place:  # several skills of one file come best first
                scores.setdefault(self._sandbox.path(place), score)
        return scores

    def _holds(self, model: Model, path: str, digest: str) -> bool:
        """Whether the vectors of this very text are there."""
        with contextlib.suppress(StoreCorruptError):
            if collection := self._existing(model):
                with collection:
                    return any(one.content_hash == digest for one in collection.states([path]))
        return False

    def _forget(self, path: str) -> None:
        """Remove what was stored of a file, if anything was."""
        with _told_as("VectorUpdate"):
            collection = self._existing(self._embedding().model)
        if collection:
            with collection:
                collection.delete_items([path], before=_now() + 1)

    def _name(self, model: Model) -> str:
        sandbox = hashlib.sha256(os.fsencode(self._sandbox.root)).hexdigest()[:16]
        return f"repertory_sandbox_{sandbox}_{model.slug}_g{RECIPE}"

    def _existing(self, model: Model) -> Collection | None:
        """The collection of what was written, if anything was."""
        store, name = self._store(), self._name(model)
        return store.open(name) if name in store.collections() else None

    def _made(self, model: Model) -> Collection:
        """The same collection, made where there is none, or none that can be read."""
        store, name = self._store(), self._name(model)
        try:
            if collection := self._existing(model):
                return collection
        except StoreCorruptError:  # what it held can be written again
            _log.exception("sandbox_corrupt", extra={"collection": name})
            store.drop(name)
        try:
            return store.create(name, model.dimension)
        except StoreError:
            if name not in store.collections():
                raise
            return store.open(name)  # another process made it a moment ago


@contextlib.contextmanager
def _told_as(function: str) -> Iterator[None]:
    """Say in the contract's words that something could not be embedded."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{function} embedding generation failed: {error}") from error


def _near(collection: Collection, vector: Vectors, where: Filter | None = None) -> dict[str, float]:
    """The best cosine of each item that is near enough, by its key, best first."""
    limit = AT_ONCE
    while True:
        matches = collection.search(vector, limit, where)
        if len(matches) < limit or matches[-1].score < LEAST_SCORE:
            break
        limit *= 4
    best: dict[str, float] = {}
    for match in matches:
        if match.score >= LEAST_SCORE:
            best.setdefault(match.key, match.score)
    return best


def _write(collection: Collection, path: str, digest: str, vectors: Vectors, seen: int) -> None:
    """Write a file's vectors, its own first, over those of an older look at it.

    Args:
        collection: Where to.
        path: The file.
        digest: Of its text.
        vectors: Its own and those of its parts.
        seen: When it was looked at.
    """
    known = next(collection.states([path]), None)
    # A clock that was set back keeps nothing from being written.
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
    # The file's own point, whose digest tells that all of it is there, is last.
    collection.upsert(sections)
    collection.delete_sections([path], before=revision)
    collection.upsert([own])
    for state in collection.states([path]):  # a newer one, if another process was faster
        collection.delete_sections([path], before=state.revision)


def _now() -> int:
    """The time in microseconds, which is a revision: it stays below 2**53 until 2255."""
    return time.time_ns() // 1_000
