"""The answer to a search."""

import math
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from repertory.catalogue.item import Kind


class Mode(StrEnum):
    """The arms that answered."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"


class Term(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A word of the query and the word of the item that it matched."""

    typed: str
    matched: str
    field: Annotated[
        str,
        Meta(
            description="The field of the item: `name`, `description` (with title and tags), "
            "`server`, `parameters`, `headings` or `body`; empty if unknown."
        ),
    ] = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The signals behind a confidence."""

    probability: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="The probability that the item is a good answer: the confidence squared.",
        ),
    ] = 0.0
    semantic: Annotated[
        float | None,
        Meta(description="The evidence by meaning, 0 to 1; null without the semantic arm."),
    ] = None
    keyword: Annotated[
        float | None,
        Meta(description="The share of a perfect word match; null for an inferred item."),
    ] = None
    name: Annotated[float, Meta(description="How similar the query is to the name, 0 to 1.")] = 0.0
    cosine: Annotated[float | None, Meta(description="The raw cosine, -1 to 1.")] = None
    semantic_rank: Annotated[
        int | None, Meta(description="The place in the semantic arm, from 1; null if not found.")
    ] = None
    keyword_rank: Annotated[
        int | None, Meta(description="The place in the keyword arm, from 1; null if not found.")
    ] = None
    terms: Annotated[
        tuple[Term, ...], Meta(description="The matched words, with their corrections.")
    ] = ()
    capability: Annotated[
        str, Meta(description="The inference that found it, like `shell → git operations`.")
    ] = ""
    policy: Annotated[tuple[str, ...], Meta(description="The effects of policies on it.")] = ()


class Hit(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One item that a search found."""

    id: str = msgspec.field(name="toolId")
    server: str = msgspec.field(name="serverName")
    name: str = msgspec.field(name="toolName")
    confidence: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Absolute. Hits are sorted by it. For a task of several steps, the best "
            "item of each step comes first, then the others; each part is sorted.",
        ),
    ]
    reason: Annotated[str, Meta(description="Why it was found, in a few words.")]
    description: Annotated[
        str, Meta(description="Its first 400 characters; an ellipsis means that it continues.")
    ]
    kind: Kind
    source: str
    path: str
    tags: tuple[str, ...]
    matched_in: Annotated[
        str,
        Meta(description="The heading of the best section, as written; empty for the item itself."),
    ] = ""
    shadowed_by: Annotated[
        str, Meta(description="The id of the skill of the same name that takes precedence.")
    ] = ""
    duplicates: Annotated[
        tuple[str, ...],
        Meta(description="The ids of its copies, best first; they are not listed as other hits."),
    ] = ()
    evidence: Evidence


_EXAMPLE = {
    "toolId": "team/key-rotation",
    "serverName": "",
    "toolName": "key-rotation",
    "confidence": 0.93,
    "reason": "Semantic similarity + keywords in name (rotate)",
    "description": "Rotate API keys without downtime",
    "kind": "skill",
    "source": "team",
    "path": "skills/key-rotation/SKILL.md",
    "tags": ["security"],
    "matchedIn": "## After a leak",
    "shadowedBy": "",
    "duplicates": [],
    "evidence": {
        "probability": 0.86,
        "semantic": 0.88,
        "keyword": 0.91,
        "name": 0.0,
        "cosine": 0.79,
        "semanticRank": 1,
        "keywordRank": 1,
        "terms": [{"typed": "rotate", "matched": "rotate", "field": "name"}],
        "capability": "",
        "policy": [],
    },
}


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to a search."""

    query: str
    hits: Annotated[
        list[Hit],
        Meta(description="The best first.", examples=[[_EXAMPLE]]),
    ] = msgspec.field(name="results")
    total_results: int = 0  # set from the hits
    threshold: float
    mode: Annotated[Mode, Meta(description="The arms that answered.")]
    degraded: Annotated[str, Meta(description="Why an arm did not answer; empty if both did.")] = ""
    index_version: Annotated[int, Meta(description="The revision of the searched index.")] = 0
    items: Annotated[int, Meta(description="The number of indexed items.")] = 0
    stale_sources: Annotated[
        tuple[str, ...], Meta(description="Sources whose last scan failed; items may be outdated.")
    ] = ()
    notices: Annotated[
        tuple[str, ...],
        Meta(description="What the user should know about the answer, one sentence each."),
    ] = ()
    best_below: Annotated[
        float, Meta(description="The confidence of the best item below the threshold; 0 if none.")
    ] = 0.0
    closest: Annotated[
        str, Meta(description="The id of the best item below the threshold; empty if none.")
    ] = ""

    def __post_init__(self) -> None:
        """Count the hits, because the HTTP answer of a tool search includes their number."""
        msgspec.structs.force_setattr(self, "total_results", len(self.hits))


def shown_confidence(confidence: float) -> float:
    """A confidence rounded to four digits, as shown and as compared with the threshold."""
    return round(confidence, 4)


def rounded_down(confidence: float) -> float:
    """A confidence rounded down to two digits, so that it stays below a threshold shown with it."""
    return math.floor(100 * confidence + 1e-9) / 100
