"""One search: both arms run in parallel, their candidates are scored together, hits explained."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future

import msgspec
from msgspec.structs import replace

from repertory.catalogue.item import Item, Kind, item_key
from repertory.embedding.engine import EmbeddingEngine, Vectors
from repertory.embedding.models import Calibration
from repertory.errors import ModelError, StoreError
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.query_words import plain
from repertory.index.vectors import Collection, Filter, Match
from repertory.notices import NOTHING_TO_SEARCH
from repertory.search.answer import Answer, Hit, Mode
from repertory.search.candidates import POOL, Words, gather, read
from repertory.search.confidence import confidences
from repertory.search.duplicates import MAX_DUPLICATES, grouped
from repertory.search.editorial import edited
from repertory.search.hits import explained, shadowing
from repertory.search.inference import infer
from repertory.search.query import Query, check
from repertory.search.ranking import Ranked, Task, ordered, task_of
from repertory.search.steps import MAX_EMBEDDED, searched


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
        notices: What to know beside each answer, one sentence each.
        version: The revision of the index.
    """

    def __init__(  # noqa: PLR0913 - one for each part
        self,
        *,
        keywords: KeywordIndex | None,
        collection: Collection | None,
        embedding: Callable[[], EmbeddingEngine],
        reader: Executor,
        degraded: Sequence[str] = (),
        precedence: Sequence[str] = (),
        stale: Sequence[str] = (),
        notices: Sequence[str] = (),
        version: int = 0,
    ) -> None:
        self.keywords = keywords
        self.collection = collection
        self.version = version
        self._embedding = embedding
        self.degraded = tuple(degraded)
        self._precedence = {name: place for place, name in enumerate(precedence)}
        self._stale = tuple(stale)
        self.notices = tuple(notices)
        self._reader = reader

    def search(self, query: Query) -> Answer:
        """Find the items that fit a query best.

        Raises:
            UsageError: The query is empty or too long, or one of its numbers is out of range.
            StoreError: Neither arm can answer.
        """
        task = self.rank(query)
        whole, confidence = task.texts[0], task.merged.confidence
        reached = task.reaching(query.threshold)
        below = {*task.merged.order}.difference(reached)
        return Answer(
            query=task.query.text,
            hits=self.hits(task, task.query, reached),
            threshold=query.threshold,
            mode=whole.candidates.mode,
            degraded=" ".join(whole.problems),
            index_version=self.version,
            items=len(whole.candidates.index),
            stale_sources=self._stale,
            notices=self._notices(whole),
            best_below=max(map(confidence.__getitem__, below), default=0.0),
        )

    def _notices(self, found: Ranked) -> tuple[str, ...]:
        is_empty = self.keywords is not None and not len(found.candidates.index)
        return (NOTHING_TO_SEARCH, *self.notices) if is_empty else self.notices

    def rank(self, query: Query, also: Sequence[int] = ()) -> Task:
        """Find candidates by both arms and by name, for each step of a task; score and order them.

        Args:
            query: The search.
            also: Rows to score even if nothing finds them.

        Raises:
            UsageError: As for ``search``.
            StoreError: Neither arm can answer.
        """
        check(query)
        query = _as_text(query)
        problems = list(self.degraded)
        queries = [replace(query, text=text) for text in searched(query.text)]
        if self.keywords is None:  # each text would have rows of its own
            del queries[1:]
        # The keyword arm runs on another thread: embedding releases Python's lock.
        index = self.keywords or KeywordIndex.empty()
        reading = [self._reader.submit(read, one, index) for one in queries]
        found = self._nearest(queries, problems)
        texts = [
            self._ranked(one, words, vector, nearest, also, tuple(problems))
            for one, words, (vector, nearest) in zip(queries, reading, found, strict=True)
        ]
        return task_of(query, texts)

    def _ranked(
        self,
        query: Query,
        reading: Future[Words],
        vector: Vectors | None,
        nearest: Sequence[Match],
        also: Sequence[int],
        problems: tuple[str, ...],
    ) -> Ranked:
        """The candidates of one text, in order."""
        index, words = self.keywords, reading.result()
        mode, calibration = Mode.KEYWORD, Calibration()
        if vector is not None:
            mode, calibration = Mode.HYBRID, self._embedding().model.calibration or calibration
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
            cosines_of=lambda keys: self._cosines(vector, keys),
            calibration=calibration,
            mode=mode,
        )
        confidence, notes = edited(candidates, confidences(candidates))
        return Ranked(
            candidates=candidates,
            confidence=confidence,
            notes=notes,
            order=ordered(candidates, confidence, self._precedence),
            problems=problems,
        )

    def hits(self, task: Task, query: Query, reached: Sequence[int] | None = None) -> list[Hit]:
        """The best candidates, up to a query's limit and down to its threshold.

        ``reached`` are the rows that reach the threshold, if the caller has them.
        """
        whole = task.texts[0].candidates
        rows = task.reaching(query.threshold) if reached is None else reached
        entries = [whole.index.entries[row] for row in rows]
        groups = grouped(entries)[: query.limit]
        hits = self.hits_at(task, [rows[places[0]] for places in groups])
        hits = [
            replace(
                hit, duplicates=tuple(entries[place].id for place in places[1:][:MAX_DUPLICATES])
            )
            for hit, places in zip(hits, groups, strict=True)
        ]
        cut = replace(query, text=whole.query.text)
        copies = [copy for hit in hits for copy in hit.duplicates]
        return hits + infer(cut, whole.index, hits, self.available_items, copies)

    def hits_at(self, task: Task, rows: Sequence[int]) -> list[Hit]:
        """The hits for the candidates of some rows, each by the text that it fits best."""
        index = task.texts[0].candidates.index
        entries = [index.entries[row] for row in rows]
        # A tool has no body, so there is nothing to look up in it.
        items = self.available_items([entry.id for entry in entries if entry.kind is not Kind.TOOL])
        hits = []
        for row, entry in zip(rows, entries, strict=True):
            ranked, place = task.best_of(row)
            hits.append(
                explained(
                    ranked.candidates,
                    place,
                    float(ranked.confidence[place]),
                    items.get(entry.id),
                    ranked.notes.get(place, ()),
                    shadowing(index, entry, self._precedence),
                )
            )
        return hits

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

    def _nearest(
        self, queries: Sequence[Query], problems: list[str]
    ) -> list[tuple[Vectors | None, list[Match]]]:
        """Each text's vector and its nearest points; None, and a problem added, if that failed."""
        if self.collection is None:
            return [(None, [])] * len(queries)
        try:
            engine = self._embedding()
            whole, *steps = (plain(one.text) for one in queries)
            if steps:
                vectors = engine.embed_queries([text[:MAX_EMBEDDED] for text in (whole, *steps)])
            else:
                vectors = engine.embed_query(whole)[None]
            return [
                (vector, self.collection.search(vector, POOL, one.where))
                for vector, one in zip(vectors, queries, strict=True)
            ]
        except (ModelError, StoreError) as error:
            problems.append(str(error))
            return [(None, [])] * len(queries)

    def _cosines(self, vector: Vectors | None, keys: list[int]) -> Mapping[int, float]:
        if vector is None or self.collection is None or not keys:
            return {}
        try:
            return self.collection.scores(vector, keys)
        except StoreError:  # unavailable since the search: the candidates are scored without
            return {}


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
    return replace(query, text=whole(query.text), where=Filter(**where))
