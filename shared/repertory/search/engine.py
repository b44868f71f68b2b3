"""One search: both arms side by side, their candidates scored together, the best explained."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor

import msgspec
import numpy as np
from numpy.typing import NDArray

from repertory.catalogue.item import Item, Kind, item_key
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import Calibration
from repertory.errors import ModelError, StoreError, UsageError
from repertory.index.keywords.index import KeywordIndex, Term
from repertory.index.keywords.names import ONE_EDIT
from repertory.index.vectors import Collection, Filter, Match
from repertory.search.answer import Answer, Hit, Mode, Query, check_text
from repertory.search.candidates import Candidates, gather, pool
from repertory.search.confidence import confidences
from repertory.search.hits import explained, shadowing
from repertory.search.inference import GOOD_ENOUGH, infer


class SearchEngine:
    """Searches one catalogue. Safe to call from several threads.

    Args:
        keywords: The keyword index; None when it cannot be had, which leaves the semantic arm.
        collection: The vectors; None when they cannot be had, which leaves the keyword arm.
        reader: Runs the keyword arm beside the other.
        embedding: Gives the engine that embeds queries, waiting for it if it is still loading;
            raises ModelError when there is none.
        degraded: Why an arm is missing, where one is.
        precedence: The names of the sources, the one that is taken first at the front.
        stale: The names of the sources whose items may be old.
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

    @property
    def is_waiting(self) -> bool:
        """Whether the store could not be opened, which may have passed."""
        return self.collection is None and bool(self.degraded)

    def search(self, query: Query) -> Answer:
        """Find what fits a query best.

        Raises:
            UsageError: The query is empty or too long, or one of its numbers is out of range.
            StoreError: Neither arm can answer.
        """
        _validate(query)
        query = _as_text(query)
        problems = list(self.degraded)
        # The keyword arm reads on another thread: embedding leaves Python's lock free.
        reading = self._reader.submit(_read, self.keywords or KeywordIndex.empty(), query)
        vector, matches = self._nearest(query, problems)
        index, (terms, found) = self.keywords, reading.result()
        mode = Mode.KEYWORD if vector is None else Mode.HYBRID
        if index is None:
            if vector is None or self.collection is None:
                raise StoreError("Nothing can answer: " + " ".join(problems))
            index = _index_of(matches, self.collection)
            terms = index.terms(query.text)
            mode = Mode.SEMANTIC
        candidates = gather(
            query,
            index,
            terms=terms,
            found=found,
            matches=matches,
            cosines_of=lambda items: self._cosines(vector, items),
            calibration=self._calibration(vector),
            mode=mode,
        )
        confidence = confidences(candidates)
        order = self._order(candidates, confidence)
        typed = candidates.close >= ONE_EDIT  # a typed name is never hidden
        shown = typed | (confidence >= query.threshold)
        reached = [place for place in order if shown[place]]
        best = [(place, candidates.entry(place)) for place in reached[: query.limit]]
        # A tool has no body, so there is nothing to look up in it.
        items = self._items([entry.id for _, entry in best if entry.kind is not Kind.TOOL])
        hits = [
            explained(candidates, place, float(confidence[place]), items.get(entry.id))
            for place, entry in best
        ]
        if not hits or hits[0].confidence < GOOD_ENOUGH:
            hits = infer(query, index, hits)
        hits = [self._marked(index, hit) for hit in hits]
        return Answer(
            query=query.text,
            hits=hits,
            threshold=query.threshold,
            mode=mode,
            degraded=" ".join(problems),
            index_version=self.version,
            items=len(index),
            stale_sources=self._stale,
            best_below=float(confidence[~shown].max(initial=0.0)),
        )

    def _nearest(self, query: Query, problems: list[str]) -> tuple[Vectors | None, list[Match]]:
        """The query's vector and what lies nearest to it; None, and the problem told, else."""
        if self.collection is None:
            return None, []
        try:
            vector = self._embedding().embed_query(query.text)
            return vector, self.collection.search(vector, pool(query), query.where)
        except (ModelError, StoreError) as error:
            problems.append(str(error))
            return None, []

    def _calibration(self, vector: Vectors | None) -> Calibration:
        return Calibration() if vector is None else self._embedding().model.calibration

    def _cosines(self, vector: Vectors | None, items: list[str]) -> Mapping[str, float]:
        if vector is None or self.collection is None or not items:
            return {}
        try:
            return self.collection.scores(vector, items)
        except StoreError:  # it went away since; what was found goes on without
            return {}

    def _marked(self, index: KeywordIndex, hit: Hit) -> Hit:
        entry = index.entries[index.row_of[hit.id]]
        shadowed_by = shadowing(index, entry, self._precedence)
        return msgspec.structs.replace(hit, shadowed_by=shadowed_by) if shadowed_by else hit

    def _items(self, items: list[str]) -> Mapping[str, Item]:
        """The whole of some items, where the store can be read."""
        if self.collection is None or not items:
            return {}
        try:
            records = self.collection.records([item_key(item) for item in items])
        except StoreError:  # a search that came this far answers without them
            return {}
        return {item: msgspec.convert(record, Item) for item, record in records.items()}

    def _order(self, candidates: Candidates, confidence: NDArray[np.float32]) -> list[int]:
        """The places of the candidates, best first; of equals, the source taken first leads."""
        entries = (candidates.index.entries[row] for row in candidates.rows.tolist())
        last = len(self._precedence)
        rank = np.array([self._precedence.get(entry.source, last) for entry in entries])
        order: list[int] = np.lexsort((candidates.rows, rank, -confidence.round(5))).tolist()
        return order


def _read(index: KeywordIndex, query: Query) -> tuple[list[Term], NDArray[np.int32]]:
    """The keyword arm: the terms of a query, and the rows that match them best."""
    terms = index.terms(query.text)
    return terms, index.candidates(terms, pool(query), query.where)


def _index_of(matches: Sequence[Match], collection: Collection) -> KeywordIndex:
    """A keyword index of just what the vectors found, for when there is no other."""
    records = collection.records(list(dict.fromkeys(match.key for match in matches)))
    return KeywordIndex.empty().updated(
        (), (msgspec.convert(record, Item) for record in records.values())
    )


def _as_text(query: Query) -> Query:
    """The query without what is no text, as a shell may hand over, and nobody can write."""

    def whole(text: str) -> str:
        return text.encode("utf-8", "replace").decode()

    where = {
        name: tuple(map(whole, getattr(query.where, name))) for name in Filter.__struct_fields__
    }
    return msgspec.structs.replace(query, text=whole(query.text), where=Filter(**where))


def _validate(query: Query) -> None:
    check_text(query.text)
    for name, value in (("threshold", query.threshold), ("alpha", query.alpha)):
        if not 0.0 <= value <= 1.0:
            raise UsageError(f"{name} is {value}; it must be from 0 to 1.")
    if query.limit < 1:
        raise UsageError(f"limit is {query.limit}; it must be at least 1.")
