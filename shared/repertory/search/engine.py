"""One search: both arms run in parallel, their candidates are scored together, hits explained."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import Item, Kind, item_key
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import Calibration
from repertory.errors import ModelError, StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.lexicon import plain
from repertory.index.keywords.names import ONE_EDIT
from repertory.index.vectors import Collection, Filter, Match
from repertory.search.answer import Answer, Hit, Mode
from repertory.search.candidates import POOL, Candidates, gather, read
from repertory.search.confidence import confidences
from repertory.search.editorial import edited
from repertory.search.hits import explained, shadowing
from repertory.search.inference import infer
from repertory.search.query import Query, check


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """The candidates of a query in order.

    Attributes:
        candidates: The candidates; their query is the cleaned one.
        confidence: Of each candidate.
        notes: The effects of policies, by place.
        order: The places of the candidates, best first.
        problems: Why an arm is missing, if one is.
    """

    candidates: Candidates
    confidence: NDArray[np.float64]
    notes: Mapping[int, Sequence[str]]
    order: Sequence[int]
    problems: tuple[str, ...]


def reaching(
    found: Candidates, confidence: NDArray[np.float64], threshold: float
) -> NDArray[np.bool_]:
    """Which candidates reach a threshold; one whose name was typed always does."""
    reaches: NDArray[np.bool_] = (confidence >= threshold) | (found.close >= ONE_EDIT)
    return reaches


class SearchEngine:
    """Searches one catalogue. Safe to call from several threads.

    Args:
        keywords: The keyword index; None if it is unavailable, which leaves the semantic arm.
        collection: The vectors; None if they are unavailable, which leaves the keyword arm.
        reader: Runs the keyword arm in parallel to the other.
        embedding: Returns the engine that embeds queries and waits while it is loading; raises
            ModelError if none is available.
        degraded: Why an arm is missing, if one is.
        precedence: The names of the sources, highest precedence first.
        stale: The names of the sources whose items may be outdated.
        version: The revision of the index.
    """

    def __init__(
        self,
        *,
        keywords: KeywordIndex | None,
        collection: Collection | None,
        embedding: Callable[[], EmbeddingEngine],
        reader: Executor,
        degraded: Sequence[str] = (),
        precedence: Sequence[str] = (),
        stale: Sequence[str] = (),
        version: int = 0,
    ) -> None:
        self.keywords = keywords
        self.collection = collection
        self.version = version
        self._embedding = embedding
        self.degraded = tuple(degraded)
        self._precedence = {name: place for place, name in enumerate(precedence)}
        self._stale = tuple(stale)
        self._reader = reader

    def search(self, query: Query, *, exclude: Sequence[str] = ()) -> Answer:
        """Find the items that fit a query best.

        Args:
            query: The search.
            exclude: The ids of items to leave out, as if they were not indexed.

        Raises:
            UsageError: The query is empty or too long, or one of its numbers is out of range.
            StoreError: Neither arm can answer.
        """
        ranked = self.rank(query, exclude=exclude)
        found = ranked.candidates
        below = ~reaching(found, ranked.confidence, query.threshold)
        return Answer(
            query=found.query.text,
            hits=self.hits(ranked, found.query),
            threshold=query.threshold,
            mode=found.mode,
            degraded=" ".join(ranked.problems),
            index_version=self.version,
            items=len(found.index),
            stale_sources=self._stale,
            best_below=float(ranked.confidence[below].max(initial=0.0)),
        )

    def rank(
        self, query: Query, also: Sequence[int] = (), *, exclude: Sequence[str] = ()
    ) -> Ranked:
        """Find candidates by both arms and by name, score and order them.

        Args:
            query: The search.
            also: Rows to score even if nothing finds them.
            exclude: As for ``search``.

        Raises:
            UsageError: As for ``search``.
            StoreError: Neither arm can answer.
        """
        check(query)
        query = _as_text(query)
        problems = list(self.degraded)
        # The keyword arm runs on another thread: embedding releases Python's lock.
        reading = self._reader.submit(read, query, self.keywords or KeywordIndex.empty())
        vector, nearest = self._nearest(query, problems)
        index, words = self.keywords, reading.result()
        mode, calibration = Mode.KEYWORD, Calibration()
        if vector is not None:
            mode, calibration = Mode.HYBRID, self._embedding().model.calibration
        if index is None:
            if vector is None or self.collection is None:
                raise StoreError("Nothing can answer: " + " ".join(problems))
            index = _index_of(nearest, self.collection)
            words = read(query, index)
            mode = Mode.SEMANTIC
        candidates = gather(
            query,
            index,
            words=words,
            also=also,
            nearest=nearest,
            cosines_of=lambda items: self._cosines(vector, items),
            calibration=calibration,
            mode=mode,
            exclude=exclude,
        )
        confidence, notes = edited(candidates, confidences(candidates))
        return Ranked(
            candidates=candidates,
            confidence=confidence,
            notes=notes,
            order=self._order(candidates, confidence),
            problems=tuple(problems),
        )

    def hits(self, ranked: Ranked, query: Query) -> list[Hit]:
        """The best candidates, up to a query's limit and down to its threshold."""
        found = ranked.candidates
        reaches = reaching(found, ranked.confidence, query.threshold)
        places = [place for place in ranked.order if reaches[place]]
        hits = self.hits_at(ranked, places[: query.limit])
        return hits + infer(query, found.index, hits, self.available_items, found.exclude)

    def hits_at(self, ranked: Ranked, places: Sequence[int]) -> list[Hit]:
        """The hits for the candidates at some places."""
        found = ranked.candidates
        entries = [found.entry(place) for place in places]
        # A tool has no body, so there is nothing to look up in it.
        items = self.available_items([entry.id for entry in entries if entry.kind is not Kind.TOOL])
        return [
            explained(
                found,
                place,
                float(ranked.confidence[place]),
                items.get(entry.id),
                ranked.notes.get(place, ()),
                shadowing(found.index, entry, self._precedence),
            )
            for place, entry in zip(places, entries, strict=True)
        ]

    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        """Some whole indexed items by id; unknown ids are left out.

        Raises:
            StoreError: The store cannot be read now.
        """
        if self.collection is None:
            raise StoreError("The items cannot be read now: " + " ".join(self.degraded))
        records = self.collection.records([item_key(item_id) for item_id in ids])
        return {
            item_id: msgspec.convert(records[item_id], Item)
            for item_id in ids
            if item_id in records
        }

    def available_items(self, ids: Sequence[str]) -> dict[str, Item]:
        """Some whole indexed items by id; none if the store is unavailable."""
        with contextlib.suppress(StoreError):
            return self.items(ids)
        return {}

    def _nearest(self, query: Query, problems: list[str]) -> tuple[Vectors | None, list[Match]]:
        """The query's vector and its nearest points; None, and a problem added, if that failed."""
        if self.collection is None:
            return None, []
        try:
            vector = self._embedding().embed_query(plain(query.text))
            return vector, self.collection.search(vector, POOL, query.where)
        except (ModelError, StoreError) as error:
            problems.append(str(error))
            return None, []

    def _cosines(self, vector: Vectors | None, items: list[str]) -> Mapping[str, float]:
        if vector is None or self.collection is None or not items:
            return {}
        try:
            return self.collection.scores(vector, items)
        except StoreError:  # unavailable since the search: the candidates are scored without
            return {}

    def _order(self, candidates: Candidates, confidence: NDArray[np.float64]) -> list[int]:
        """The places of the candidates, best first; of equals, the source of higher precedence."""
        entries = (candidates.index.entries[row] for row in candidates.rows.tolist())
        last = len(self._precedence)
        rank = np.array([self._precedence.get(entry.source, last) for entry in entries])
        by = (candidates.rows, rank, -confidence.round(6))
        order: list[int] = np.lexsort(by).tolist()
        return order


def _index_of(nearest: Sequence[Match], collection: Collection) -> KeywordIndex:
    """A keyword index of only the items that the vectors found."""
    records = collection.records(list(dict.fromkeys(match.key for match in nearest)))
    return KeywordIndex.empty().updated(
        (), (msgspec.convert(record, Item) for record in records.values())
    )


def _as_text(query: Query) -> Query:
    """The query without lone surrogates, which a shell may pass."""

    def whole(text: str) -> str:
        return text.encode("utf-8", "replace").decode()

    where = {
        name: tuple(map(whole, getattr(query.where, name))) for name in Filter.__struct_fields__
    }
    return msgspec.structs.replace(query, text=whole(query.text), where=Filter(**where))
