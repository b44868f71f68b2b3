"""Offers general tools that can do a job if no hit does it well."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from repertory.catalogue.item import Item, Kind, item_key
from repertory.catalogue.names import split_name
from repertory.index.keywords.document import NAME, Entry
from repertory.index.keywords.index import KeywordIndex
from repertory.index.keywords.packed import Rows
from repertory.index.keywords.query_words import plain
from repertory.index.keywords.segment import Segment
from repertory.index.keywords.tokens import term_of, terms
from repertory.search.answer import Evidence, Hit, shown_confidence
from repertory.search.capabilities import BY_NAME, CAPABILITIES, Job, certainty, jobs
from repertory.search.confidence import probability
from repertory.search.duplicates import MAX_DUPLICATES, grouped
from repertory.search.editorial import boosted
from repertory.search.evidence import reaches
from repertory.search.hits import hit_on
from repertory.search.query import Query
from repertory.values import Values

GOOD_ENOUGH = 0.5  # nothing is inferred if a direct hit has this confidence
DEFAULT_THRESHOLD = Values().threshold  # direct hits that reach it come before inferred ones
FIRST_CONFIDENCE = 0.45  # the confidence of the likeliest tool
CONFIDENCE_STEP = 0.03  # how much lower it is for each further tool
MAX_TOOLS = 2  # offered per capability
MAX_READ = 32  # tools per capability that are compared, and tools whose parameters are read

Certain = NDArray[np.int8]  # how clearly each tool has a capability; see ``certainty``


class _Tools:
    """The tools of a segment whose name, or server's name, suggests a capability.

    Attributes:
        rows: Their rows, ascending.
    """

    def __init__(self, segment: Segment) -> None:
        words = {word for verbs, objects, *_ in CAPABILITIES.values() for word in verbs | objects}
        entries = ((row, segment.entry(row)) for row in _tools_with(segment, words))
        rows = [
            row
            for row, entry in entries
            if not (entry.policy and entry.policy.deprecated_by)
            and not words.isdisjoint(split_name(f"{entry.server} {entry.name}").split())
        ]
        self.rows: Rows = np.array(rows, np.int32)
        self._certain: dict[tuple[str, str, bool], Certain] = {}

    def certain(
        self, segment: Segment, capability: str, job: Job, parameters: Collection[str]
    ) -> Certain:
        """How clearly each tool has a capability. Cached, as a segment may have thousands."""
        key = (capability, job.label, bool(parameters))
        if key not in self._certain:
            entries = map(segment.entry, self.rows.tolist())
            found = [certainty(capability, job, entry, parameters) for entry in entries]
            self._certain[key] = np.array(found, np.int8)
        return self._certain[key]


_known: WeakKeyDictionary[Segment, _Tools] = WeakKeyDictionary()


class Inference:
    """The tools to offer beside the direct hits of a search.

    Args:
        query: The search.
        index: The keyword index.
        direct: The confidences of the hits that reach ``DEFAULT_THRESHOLD``, whatever the query's
            threshold, up to the limit. No tool gets more than the lowest one. Nothing is offered if
            they leave no room, or if one is good enough.
        exclude: The ids of items that are not offered.
    """

    def __init__(
        self,
        query: Query,
        index: KeywordIndex,
        direct: Sequence[float],
        exclude: Collection[str],
    ) -> None:
        self._query = query
        self._index = index
        self._direct = direct
        self._exclude = exclude
        is_wanted = len(direct) < query.limit and max(direct, default=0.0) < GOOD_ENOUGH
        self._jobs = _jobs_by_capability(query) if is_wanted else {}

    def needed_items(self) -> list[str]:
        """The ids of the whole items that ``hits`` needs: tools whose names alone do not decide."""
        needed: list[str] = []
        for capability, job in self._jobs.items():
            parameters = CAPABILITIES[capability][2]
            rows, certain = self._possible(capability, job, parameters)
            rows, certain = rows[certain >= BY_NAME], certain[certain >= BY_NAME]
            takes = self._have_all_of_one(rows, [terms(word) for word in parameters])
            best = self._most_certain(rows[takes], certain[takes])
            needed += [entry.id for entry in self._index.entries(best)]
        return needed

    def hits(self, items: Mapping[str, Item]) -> list[Hit]:
        """The tools as hits, best first, down to the query's threshold.

        ``items`` are the available ones of ``needed_items``, by id.
        """
        found: list[Hit] = []
        for capability, job in self._jobs.items():
            for entry, *copies in self._able(capability, job, items):
                sure = min([FIRST_CONFIDENCE - CONFIDENCE_STEP * len(found), *self._direct])
                if entry.policy:
                    sure = min(sure, boosted(sure, entry.policy.boost))
                sure = shown_confidence(sure)
                if sure >= self._query.threshold:
                    why = f"{capability} → {job.label}"
                    evidence = Evidence(probability=round(probability(sure), 4), capability=why)
                    one = hit_on(entry, sure, f"Capability inference ({why})", evidence)
                    same = tuple(copy.id for copy in copies[:MAX_DUPLICATES])
                    found.append(replace(one, duplicates=same))
        return sorted(found, key=lambda one: -one.confidence)

    def _possible(
        self, capability: str, job: Job, parameters: Collection[str] = ()
    ) -> tuple[Rows, Certain]:
        """The rows of the tools with a capability that may be offered, and how clearly each has it.

        ``parameters`` are those that each tool is assumed to have.
        """
        found: list[tuple[Rows, Certain]] = []
        for part in self._index.parts:
            segment = part.segment
            tools = _known.get(segment) or _known.setdefault(segment, _Tools(segment))
            certain = tools.certain(segment, capability, job, parameters)
            is_left = certain > 0 if part.alive is None else (certain > 0) & part.alive[tools.rows]
            found.append((tools.rows[is_left] + np.int32(part.start), certain[is_left]))
        if not found:
            return np.zeros(0, np.int32), np.zeros(0, np.int8)
        rows, certain = (np.concatenate(values) for values in zip(*found, strict=True))
        excluded = self._index.rows_of([item_key(one) for one in self._exclude]).values()
        allowed = self._index.allowed(rows, self._query.where) & ~np.isin(rows, [*excluded])
        return rows[allowed], certain[allowed]

    def _have_all_of_one(self, rows: Rows, phrases: Iterable[list[str]]) -> NDArray[np.bool_]:
        """Which rows have all terms of at least one phrase."""
        has = np.zeros(len(rows), np.bool_)
        for phrase in phrases:
            has |= np.all([self._index.weights_in(term, rows) > 0 for term in phrase], axis=0)
        return has

    def _most_certain(self, rows: Rows, certain: Certain) -> list[int]:
        """The rows of the clearest tools, up to ``MAX_READ``; ties go to more typed words."""
        if len(rows) > MAX_READ:
            typed = [self._index.weights_in(term, rows) > 0 for term in self._typed]
            has = np.sum(typed, axis=0) if typed else np.zeros(len(rows))
            rows = rows[self._index.highest_first(rows, certain, has)[:MAX_READ]]
        best: list[int] = rows.tolist()
        return best

    def _able(self, capability: str, job: Job, items: Mapping[str, Item]) -> list[list[Entry]]:
        """The tools that have a capability most clearly, each with its copies.

        Ties go to descriptions with more of the query's words. Parameters count if the whole item
        is among ``items``.
        """
        index = self._index
        best = self._most_certain(*self._possible(capability, job))
        possible, _ = self._possible(capability, job, CAPABILITIES[capability][2])
        read = index.rows_of([item_key(one) for one in items]).values()
        rows = {*best, *possible[np.isin(possible, [*read])].tolist()}
        found = []
        for row, entry in zip(rows, index.entries([*rows]), strict=True):
            schema = items[entry.id].input_schema if entry.id in items else None
            if sure := certainty(capability, job, entry, (schema or {}).get("properties", ())):
                names = len(self._typed.intersection(terms(entry.description)))
                found.append((-sure, -names, entry.id, row, entry))
        found.sort()
        keys = index.duplicate_keys(np.array([row for *_, row, _ in found], np.int64)).tolist()
        groups = grouped(keys, lambda place: found[place][-1])[:MAX_TOOLS]
        return [[found[place][-1] for place in places] for places in groups]

    @cached_property
    def _typed(self) -> frozenset[str]:
        """The terms of the query."""
        return frozenset(terms(plain(self._query.text)))


def with_inferred(hits: list[Hit], inferred: Sequence[Hit]) -> list[Hit]:
    """Add inferred hits: after the hits that reach the default threshold, among the weaker ones."""
    if not inferred:
        return hits
    known = {one for hit in inferred for one in (hit.id, *hit.duplicates)}
    usual = [hit for hit in hits if hit.confidence >= DEFAULT_THRESHOLD]
    weak = [
        hit
        for hit in hits
        if hit.confidence < DEFAULT_THRESHOLD and known.isdisjoint((hit.id, *hit.duplicates))
    ]
    # A policy may have lowered an inferred hit below a weak one.
    return [*usual, *sorted([*inferred, *weak], key=lambda hit: -hit.confidence)]


def _jobs_by_capability(query: Query) -> dict[str, Job]:
    """The capabilities that can do the requested jobs, each with the first such job."""
    found: dict[str, Job] = {}
    for job in jobs(query.text):
        for capability in job.by:
            found.setdefault(capability, job)
    return found


def _tools_with(segment: Segment, words: Collection[str]) -> list[int]:
    """The rows of the tools with a stem of one of the words in their name or their server's."""
    columns, postings = segment.columns.fields, segment.postings
    stems = {*map(term_of, words)}
    servers = columns["server"].values
    found = columns["server"].is_any([one for one in servers if not stems.isdisjoint(terms(one))])
    for term in stems:
        rows, weights = postings.of_term(term)
        found[rows[reaches(weights, NAME.least)]] = True
    rows_found: list[int] = np.flatnonzero(found & columns["kind"].is_any([Kind.TOOL])).tolist()
    return rows_found
