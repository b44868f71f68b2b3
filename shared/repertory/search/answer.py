"""The answer to a search."""

from enum import StrEnum

import msgspec

from repertory.catalogue.item import Kind


class Mode(StrEnum):
    """Which arms answered."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    SEMANTIC = "semantic"


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A word of the query and the word of the item that it matched.

    Attributes:
        typed: As the query has it.
        matched: As the item has it.
        field: Where that stands, the most telling place if there are several: ``name``,
            ``description`` (title and tags are part of it), ``server``, ``parameters``, ``body``;
            empty where only the whole item could tell.
    """

    typed: str
    matched: str
    field: str = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Why a hit stands where it stands.

    Attributes:
        semantic: The calibrated cosine of the query and the item or its best section, 0…1; None
            when that arm did not answer.
        keyword: How much of a perfect match of the query's words it is, 0…1; None likewise.
        name: How like its name the query is, 0…1; 0 for queries that are no names.
        cosine: The raw cosine, -1…1; None likewise.
        semantic_rank, keyword_rank: Its place in each arm, from 1; None where that arm did not
            find it.
        section: The heading of the section that matched best, if that beat the item itself.
        terms: The words that matched, with their corrections and where they stand.
        capability: The inference that brought it up, like ``shell → git operations``.
        policy: What its policy, or that of an item in whose place it is, did.
    """

    semantic: float | None = None
    keyword: float | None = None
    name: float = 0.0
    cosine: float | None = None
    semantic_rank: int | None = None
    keyword_rank: int | None = None
    section: str = ""
    terms: tuple[Term, ...] = ()
    capability: str = ""
    policy: tuple[str, ...] = ()


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One item that was found.

    Attributes:
        confidence: 0…1, absolute: it does not depend on how many others were found, and it never
            rises down the list.
        reason: Why it was found, in a few words.
        matched_in: The heading of the section that matched, as written; empty for the item itself.
        shadowed_by: The id of the item of the same name that is taken before this one.
    """

    id: str
    kind: Kind
    name: str
    description: str
    source: str
    server: str
    path: str
    tags: tuple[str, ...]
    confidence: float
    reason: str
    matched_in: str = ""
    shadowed_by: str = ""
    evidence: Evidence


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a search answers.

    Attributes:
        hits: The best hits that reach the threshold, best first.
        mode: Which arms answered.
        degraded: Why not both did; empty when both did.
        index_version: The revision of the index that was searched.
        items: How many items the index holds.
        stale_sources: Sources that could not be read the last time; their items may be old.
        best_below: The confidence of the best item under the threshold, 0 if there is none.
    """

    query: str
    hits: list[Hit]
    threshold: float
    mode: Mode
    degraded: str = ""
    index_version: int = 0
    items: int = 0
    stale_sources: tuple[str, ...] = ()
    best_below: float = 0.0
