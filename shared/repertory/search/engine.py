"""One search: scores the candidates of both arms together, and explains the hits."""

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial

import numpy as np
from msgspec.structs import replace

from repertory.catalogue.item import Item, Kind, item_key
from repertory.catalogue.precedence import by_precedence
from repertory.catalogue.records import items_of, items_of_json
from repertory.embedding.engine import EmbeddingEngine
from repertory.errors import ModelError, StoreError
from repertory.index.keywords.document import HEADINGS, Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.vectors import Filter, Searched
from repertory.notices import (
    ALL_FILTERED_OUT,
    NOTHING_TO_SEARCH,
    about_steps,
    about_unknown_words,
)
from repertory.search.answer import Answer, Hit, Mode
from repertory.search.arms import Arms
from repertory.search.candidates import Candidates, all_candidates
from repertory.search.confidence import IN_BODY, Confidences, confidences, within
from repertory.search.duplicates import MAX_DUPLICATES, first_groups
from repertory.search.editorial import apply_policies
from repertory.search.evidence import reaches
from repertory.search.hits import explained, shadowing
from repertory.search.inference import DEFAULT_THRESHOLD, Inference, with_inferred
from repertory.search.item_cache import ItemCache
from repertory.search.keyword_arm import KeywordResult
from repertory.search.nearness import is_near
from repertory.search.query import Query, check
from repertory.search.quotations import Title, quotation
from repertory.search.ranking import Ranked, Task, best_first, task_of
from repertory.search.semantic_arm import VectorResult
from repertory.search.steps import texts_of_task
from repertory.telemetry.spans import traced
from repertory.text import normalized

MAX_VERSIONS = 4  # copies of one item whose texts are compared

Read = Callable[[Sequence[str]], Mapping[str, Item]]  # reads items by id


class SearchEngine:
    """Searches one catalogue. Safe to call from several threads.

    Args:
        keywords: The keyword index.
        collection: The vectors. If None, only the keyword arm answers.
        reader: Runs the keyword arm in parallel to the semantic arm.
        embedding: Returns the engine that embeds queries, and waits while it loads; raises
            ModelError if none is available.
        degraded: Why the semantic arm is unavailable, if it is.
        precedence: The names of the sources, highest precedence first.
        stale: The names of the sources whose items may be outdated.
        notices: The notices of every answer.
        version: The revision of the index.
        item_cache: The recently shown items, shared with earlier engines.
        is_gone: Whether an item no longer exists although the index may still have it; None if
            the index is followed.

    Attributes:
        hides: Whether items may be hidden from this engine's callers; see ``visible_subsets``.
    """

    def __init__(  # noqa: PLR0913 - one for each part
        self,
        *,
        keywords: KeywordIndex,
        collection: Searched | None,
        embedding: Callable[[], EmbeddingEngine],
        reader: Executor,
        degraded: Sequence[str] = (),
        precedence: Sequence[str] = (),
        stale: Sequence[str] = (),
        notices: Sequence[str] = (),
        version: int = 0,
        item_cache: ItemCache | None = None,
        is_gone: Callable[[Entry], bool] | None = None,
    ) -> None:
        self.keywords = keywords
        self.collection = collection
        self.version = version
        self._embedding = embedding
        self.degraded = tuple(degraded)
        self._precedence = by_precedence(precedence)
        self._stale = tuple(stale)
        self.notices = tuple(notices)
        self._reader = reader
        self._item_cache = item_cache or ItemCache()
        self.hides = False
        self._is_gone = is_gone

    @property
    def _arms(self) -> Arms:
        return Arms(
            keywords=self.keywords,
            collection=self.collection,
            reader=self._reader,
            embedding=self._embedding,
            item_cache=self._item_cache,
        )

    def over(
        self,
        keywords: KeywordIndex,
        collection: Searched | None,
        *,
        precedence: Sequence[str],
        stale: Sequence[str],
        notices: Sequence[str],
        hides: bool,
    ) -> "SearchEngine":
        """A copy of this engine that searches only some of its items and sources."""
        engine = copy.copy(self)
        engine.keywords = keywords
        engine.collection = collection
        engine._precedence = by_precedence(precedence)
        engine._stale = tuple(stale)
        engine.notices = tuple(notices)
        engine.hides = hides
        return engine

    @traced("search")
    def search(self, query: Query) -> Answer:
        """Find the best items for a query.

        Raises:
            UsageError: The query is empty or too long, or one of its numbers is out of range.
            StoreError: The index was closed meanwhile.
        """
        task = self.rank(query)
        problems = [*task.problems]
        hits = self.hits(task, task.query, problems)
        closest = self._closest(task, hits)
        return Answer(
            query=task.query.text,
            hits=hits,
            threshold=query.threshold,
            mode=task.texts[0].candidates.mode,
            degraded=" ".join(problems),
            index_version=self.version,
            items=len(self.keywords),
            stale_sources=self._stale,
            notices=(*self.notices_on(task), *self._left_out(task, hits)),
            best_below=0.0 if closest is None else task.merged.confidence[closest],
            closest="" if closest is None else self.keywords.entry(closest).id,
        )

    def _left_out(self, task: Task, hits: Sequence[Hit]) -> Iterator[str]:
        """Notices about what the filters and the limit leave out."""
        query = task.query
        if not hits and len(self.keywords) and not self.keywords.has_any(query.where):
            yield ALL_FILTERED_OUT
        firsts = task.merged.firsts
        if len(firsts) > query.limit:
            left_out = len(firsts.intersection(task.reaching(query.threshold))) - query.limit
            if left_out > 0:
                yield about_steps(left_out, query.limit)

    def _closest(self, task: Task, hits: Sequence[Hit]) -> int | None:
        """The row of the best item below the threshold that was not inferred; None if none."""
        confidence = task.merged.confidence
        inferred = [hit for hit in hits if hit.evidence.capability]
        shown = [item_key(one) for hit in inferred for one in (hit.id, *hit.duplicates)]
        out = {*task.reaching(task.query.threshold), *self.keywords.rows_of(shown).values()}
        below = [row for row in task.merged.order if row not in out and confidence[row]]
        best = sorted(below, key=confidence.__getitem__, reverse=True)
        return next((row for row in best if not self._gone([[row]])), None)

    def notices_on(self, task: Task) -> tuple[str, ...]:
        """The notices of an answer about the index and the arms."""
        if not len(self.keywords):
            return NOTHING_TO_SEARCH, *self.notices
        if task.texts[0].candidates.mode is not Mode.KEYWORD or task.problems:
            return self.notices
        slug = ""
        with contextlib.suppress(ModelError):
            slug = self._embedding().model.slug
        return *self.notices, about_unknown_words(slug)

    def rank(self, query: Query, also: Sequence[int] = ()) -> Task:
        """Find, score and order candidates for each step of a task, by both arms and by name.

        Args:
            query: The search.
            also: Rows to score even if neither arm finds them.

        Raises:
            UsageError, StoreError: As for ``search``.
        """
        check(query)
        query = _as_text(query)
        problems = list(self.degraded)
        queries = [replace(query, text=text) for text in texts_of_task(query.text)]
        texts = [
            self._ranked(one, words, nearest, problems)
            for one, (words, nearest) in zip(
                queries, self._arms.search(queries, also, problems), strict=True
            )
        ]
        return task_of(query, texts, problems)

    def _ranked(
        self,
        query: Query,
        words: KeywordResult,
        nearest: VectorResult | None,
        problems: list[str],
    ) -> Ranked:
        """The ranked candidates of one text; an error of reading items is added to ``problems``."""
        records = nearest.records if nearest else {}
        read = partial(self.available_items, problems=problems, given=records)
        candidates = all_candidates(query, self.keywords, words, nearest)
        candidates = self._with_quoted(candidates, read)
        own = confidences(candidates)
        confidence, notes = apply_policies(candidates, own)
        if near := self._near(candidates, own, confidence, read):
            own = np.where(np.isin(candidates.rows, near), within(IN_BODY, own), own)
            confidence, notes = apply_policies(candidates, own)
        return Ranked(
            candidates=candidates,
            confidence=confidence,
            notes=notes,
            order=best_first(candidates, confidence, self._precedence),
            records=records,
        )

    def _with_quoted(self, found: Candidates, read: Read) -> Candidates:
        """The candidates, with those whose items contain the query as text or as a title."""
        same = found.complete()
        wanted = quotation(found.query.text) if same else None  # which takes longer
        if wanted is None:
            return found
        if isinstance(wanted, Title):
            same = found.complete(among=np.all(reaches(found.weights, HEADINGS.least), axis=0))
        return replace(found, quoted=frozenset(self._holding(same, wanted.is_of, read)))

    def _near(
        self, found: Candidates, own: Confidences, confidence: Confidences, read: Read
    ) -> list[int]:
        """The rows that have the words of the query near each other, if that may matter.

        It does not if enough other items are better, unless a policy may raise such an item.

        Args:
            found: The candidates.
            own: Their confidences without the policies.
            confidence: Their confidences.
            read: Reads items.
        """
        (least, most), terms, limit = IN_BODY, found.matches.terms, found.query.limit
        same = found.complete(among=own < least) if len(terms) > 1 else []
        if not same:
            return []
        has_policy = any(self.keywords.entry(row).policy for group in same for row in group)
        if not has_policy:
            better, _ = self._groups_left(found.rows[confidence > most].tolist(), limit)
            if len(better) == limit:
                return []
        return self._holding(same, lambda item: is_near(terms, item.body), read)

    def _holding(
        self, same: Sequence[Sequence[int]], holds: Callable[[Item], bool], read: Read
    ) -> list[int]:
        """The rows of items for which a condition holds, as far as they can be read.

        Of each group of copies, ``MAX_VERSIONS`` items are read, as skills with the same
        description may have different bodies; the rest count as the first one.
        """
        if self.collection is None:  # otherwise the result would depend on what is cached
            return []
        rows = [row for group in same for row in group[:MAX_VERSIONS]]
        ids = {row: entry.id for row, entry in zip(rows, self.keywords.entries(rows), strict=True)}
        items = read([*ids.values()])
        held = {row: (item := items.get(ids[row])) is not None and holds(item) for row in rows}
        return [row for group in same for row in group if held.get(row, held[group[0]])]

    def hits(
        self,
        task: Task,
        query: Query,
        problems: list[str] | None = None,
        max_copies: int = MAX_DUPLICATES,
    ) -> list[Hit]:
        """The best candidates, up to a query's limit and down to its threshold.

        Args:
            task: The ranked candidates.
            query: The limit and the threshold.
            problems: A list that gets the error if whole items could not be read.
            max_copies: The maximum number of copies that a hit names.
        """
        index = self.keywords
        groups, away = self._groups_left(task.reaching(query.threshold), query.limit)
        first = [one for one, *_ in groups]
        copies = [tuple(index.entry(row).id for row in same[:max_copies]) for _, *same in groups]
        sure = task.merged.confidence
        usual = [row for row in task.reaching(DEFAULT_THRESHOLD) if row not in away]
        direct = [sure[one] for one, *_ in first_groups(usual, index, query.limit)]
        shown = {
            one
            for row, same in zip(first, copies, strict=True)
            if sure[row] >= DEFAULT_THRESHOLD
            for one in (index.entry(row).id, *same)
        }
        asked = replace(query, text=task.texts[0].candidates.query.text)
        inference = Inference(asked, index, direct, shown)
        # Read everything at once, because with a Qdrant server each read is a request.
        wanted = [*_with_body(index, first), *inference.needed_items()]
        items = self.available_items(wanted, problems, task.records)
        hits = [
            replace(hit, duplicates=same)
            for hit, same in zip(self._explained(task, first, items), copies, strict=True)
        ]
        return with_inferred(hits, inference.hits(items))[: query.limit]

    def _groups_left(self, rows: Sequence[int], limit: int) -> tuple[list[list[int]], set[int]]:
        """The first groups of duplicates without items that are gone, and the rows of those."""
        groups = first_groups(rows, self.keywords, limit)
        away: set[int] = set()
        while gone := self._gone(groups):
            # If the first of some copies is gone, the group may now rank lower.
            away |= gone
            groups = first_groups([row for row in rows if row not in away], self.keywords, limit)
        return groups, away

    def _gone(self, groups: Sequence[Sequence[int]]) -> set[int]:
        """The rows whose items no longer exist."""
        if self._is_gone is None:
            return set()
        entry = self.keywords.entry
        return {row for group in groups for row in group if self._is_gone(entry(row))}

    def hits_at(self, task: Task, rows: Sequence[int]) -> list[Hit]:
        """The hits for some rows, each explained by the text that it fits best."""
        items = self.available_items(_with_body(self.keywords, rows), given=task.records)
        return self._explained(task, rows, items)

    def _explained(self, task: Task, rows: Sequence[int], items: Mapping[str, Item]) -> list[Hit]:
        hits = []
        for row, entry in zip(rows, self.keywords.entries(rows), strict=True):
            ranked, place = task.best_of(row)
            hits.append(
                explained(
                    ranked.candidates,
                    place,
                    task.merged.confidence[row],
                    items.get(entry.id),
                    ranked.notes.get(place, ()),
                    shadowing(self.keywords, entry, self._precedence, self._is_gone),
                )
            )
        return hits

    def items(self, ids: Sequence[str]) -> dict[str, Item]:
        """Whole indexed items by id; unknown ids are left out.

        Raises:
            StoreError: The store cannot be read now.
        """
        if self.collection is None:
            raise StoreError("The items cannot be read now: " + " ".join(self.degraded))
        records = self.collection.records([item_key(item_id) for item_id in ids])
        known = (records[item_id] for item_id in ids if item_id in records)
        return {item.id: item for item in items_of(known)}

    def available_items(
        self,
        ids: Sequence[str],
        problems: list[str] | None = None,
        given: Mapping[str, str] | None = None,
    ) -> dict[str, Item]:
        """Whole indexed items by id, except those that cannot be read now.

        If reading fails, the error is added to ``problems``; it is not if there is no collection.
        ``given`` are records that were already read, by id, as JSON.
        """
        rows = self.keywords.rows_of([item_key(item_id) for item_id in ids])
        found = self._item_cache.get(self.keywords.entries(rows.values()))
        given = given or {}
        came = [*items_of_json(given[one] for one in ids if one in given and one not in found)]
        self._item_cache.keep(came)
        found |= {item.id: item for item in came}
        missing = [item_id for item_id in ids if item_id not in found]
        if missing and self.collection:
            try:
                read = self.items(missing)
            except StoreError as error:
                if problems is not None and str(error) not in problems:
                    problems.append(str(error))
            else:
                self._item_cache.keep(read.values())
                found |= read
        return found


def _with_body(index: KeywordIndex, rows: Sequence[int]) -> list[str]:
    """The ids of the items that have a body, which tools do not."""
    return [entry.id for entry in index.entries(rows) if entry.kind is not Kind.TOOL]


def _as_text(query: Query) -> Query:
    """The query in NFC and without lone surrogates, which a shell may pass."""

    def whole(text: str) -> str:
        return text.encode("utf-8", "replace").decode()

    where = {
        name: tuple(map(whole, getattr(query.where, name))) for name in Filter.__struct_fields__
    }
    return replace(query, text=normalized("NFC", whole(query.text)), where=Filter(**where))
