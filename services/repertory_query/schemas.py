"""What goes in and out, for whoever reads ``/openapi.json``.

Requests are read by these models. Answers are only described by them: they are written by msgspec,
and a test holds that what is written fits the description.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from repertory.catalogue.item import Kind
from repertory.search.answer import Mode
from repertory.search.query import MAX_QUERY_LENGTH

QUERY = "What is looked for: words, a task, or a name."
ARGUMENTS = "The tool's arguments, as its input schema has them; none is the same as {}."
# Only told: the search itself refuses what is beyond them, in words. Some characters that are space
# to Python are none to the expressions of JSON Schema.
QUERY_BOUNDS: dict[str, JsonValue] = {
    "pattern": r"[^\s\x1c-\x1f\x85]",
    "maxLength": MAX_QUERY_LENGTH,
}
MOST_QUERIES = 100  # of one request
MOST_HITS = 100  # of one query
MOST_VALUES = 100  # of one filter


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Out(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


def _whole(text: str) -> str:
    """A text that can be written again as UTF-8; JSON can escape half a character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("it holds half a character") from error
    return text


def _integral(value: object) -> object:
    """JSON has one kind of number: 5.0 is 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Text = Annotated[str, AfterValidator(_whole)]
Limit = Annotated[int, Field(strict=True, ge=1, le=MOST_HITS), BeforeValidator(_integral)]
Values = Annotated[list[Text], Field(max_length=MOST_VALUES)]


class Query(_In):
    """One search."""

    q: Text = Field(description=QUERY, json_schema_extra=QUERY_BOUNDS)
    limit: Limit | None = Field(None, description="The most results.")
    threshold: float | None = Field(
        None, strict=True, ge=0, le=1, description="The least confidence."
    )
    alpha: float | None = Field(
        None, strict=True, ge=0, le=1, description="The share of meaning against words."
    )
    name_weight: float | None = Field(
        None, strict=True, ge=0, le=1, description="What a name typed as it is adds."
    )
    section_weight: float | None = Field(
        None, strict=True, ge=0, le=1, description="What a section counts of its item."
    )
    kinds: Annotated[list[Kind], Field(max_length=MOST_VALUES)] = []
    sources: Values = []
    servers: Values = []
    tags: Values = []


class Queries(_In):
    """Several searches."""

    queries: list[Query] = Field(
        min_length=1,
        max_length=MOST_QUERIES,
        examples=[[{"q": "rotate API keys", "limit": 5}, {"q": "commit", "kinds": ["tool"]}]],
    )


class Retry(_In):
    """Which failed jobs to try again."""

    ids: list[Text] | None = Field(
        description="Their ids; null for all.", max_length=1_000, examples=[["5f1d7a84c2e94b0c"]]
    )


class Term(_Out):
    """A word of the query and the word of the item that it matched."""

    typed: str
    matched: str
    field: str = Field(description="Where the item has it: `name`, `description` and so on.")


class Evidence(_Out):
    """What a confidence is made of."""

    semantic: float | None = Field(description="The calibrated cosine, 0 to 1.")
    keyword: float | None = Field(description="How much of a perfect match of words it is.")
    name: float = Field(description="How like its name the query is.")
    cosine: float | None
    semantic_rank: int | None
    keyword_rank: int | None
    section: str
    terms: list[Term]
    capability: str
    policy: list[str] = Field(description="What policies did to it.")


class Hit(_Out):
    """One item that was found."""

    tool_id: str = Field(description="The same as `id`.")
    server_name: str
    tool_name: str
    id: str
    kind: Kind
    description: str
    source: str
    path: str
    tags: list[str]
    confidence: float = Field(ge=0, le=1)
    reason: str
    matched_in: str = Field(description="The heading of the section that matched, if one did.")
    shadowed_by: str = Field(description="The item of the same name that is taken before it.")
    evidence: Evidence


class Answer(_Out):
    """What a search answers."""

    query: str
    results: list[Hit] = Field(description="The best first.")
    total_results: int
    threshold: float
    mode: Mode = Field(description="Which arms answered.")
    degraded: str = Field(description="Why not both did; empty when both did.")
    index_version: int
    items: int = Field(description="How many items the index holds.")
    stale_sources: list[str] = Field(description="Sources whose items may be old.")
    best_below: float = Field(description="The confidence of the best under the threshold.")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "rotate API keys",
                    "results": [
                        {
                            "toolId": "team/key-rotation",
                            "serverName": "",
                            "toolName": "key-rotation",
                            "id": "team/key-rotation",
                            "kind": "skill",
                            "description": "Rotate API keys without downtime",
                            "source": "team",
                            "path": "skills/key-rotation/SKILL.md",
                            "tags": ["security"],
                            "confidence": 0.93,
                            "reason": "Semantic similarity + keywords in name (rotate)",
                            "matchedIn": "",
                            "shadowedBy": "",
                            "evidence": {
                                "semantic": 0.88,
                                "keyword": 0.91,
                                "name": 0.0,
                                "cosine": 0.79,
                                "semanticRank": 1,
                                "keywordRank": 1,
                                "section": "",
                                "terms": [
                                    {"typed": "rotate", "matched": "rotate", "field": "name"}
                                ],
                                "capability": "",
                                "policy": [],
                            },
                        }
                    ],
                    "totalResults": 1,
                    "threshold": 0.35,
                    "mode": "hybrid",
                    "degraded": "",
                    "indexVersion": 1785000000000,
                    "items": 1_240,
                    "staleSources": [],
                    "bestBelow": 0.21,
                }
            ]
        }
    )


class Filter(_Out):
    """Which items may be found: any of the values of a field, all fields together."""

    kinds: list[Kind]
    sources: list[str]
    servers: list[str]
    tags: list[str]


class Weights(_Out):
    """How much each kind of evidence counts."""

    alpha: float
    name_weight: float
    section_weight: float


class Asked(_Out):
    """A search, as it was made."""

    text: str
    limit: int
    threshold: float
    weights: Weights
    where: Filter


class Word(_Out):
    """A word of the query, and what the item has of it."""

    typed: str
    matched: str = Field(description="As the item has it; empty where it does not.")
    fields: list[str] = Field(description="Where the item has it: `name`, `description` and so on.")
    near: str = Field(description="The item's word that is most like a missing one, if any is.")
    share: float = Field(description="How much of the query it is, 0 to 1.")


class Better(_Out):
    """An item that stands before another."""

    id: str
    confidence: float


class Explanation(_Out):
    """Why a search shows an item, or why it does not."""

    query: Asked
    verdict: str = Field(description="The answer in a sentence or two.")
    shown: bool
    rank: int | None = Field(description="Its place among all that was found, if it was.")
    hit: Hit = Field(description="The item as the search scores it, or would if it had found it.")
    words: list[Word] = Field(description="The words of the query that are searched for.")
    better: list[Better] = Field(description="The first of what stands before it.")
    mode: Mode = Field(description="Which arms answered.")
    degraded: str = Field(description="Why not both did; empty when both did.")
    items: int = Field(description="How many items the index holds.")


class Answers(_Out):
    """What several searches answer, in their order."""

    answers: list[Answer]


class ItemSummary(_Out):
    """One item in a list."""

    id: str
    kind: Kind
    name: str
    source: str
    server: str
    description: str
    path: str
    tags: list[str]


class Items(_Out):
    """A page of a list."""

    items: list[ItemSummary]
    total: int = Field(description="How many there are on all pages.")


class Policy(BaseModel):
    """What people decided about an item; what is empty is left out."""

    model_config = ConfigDict(extra="forbid")

    pin: list[str] = Field([], description="Queries with all words of one put the item first.")
    boost: float = Field(0.0, description="-1 to 1, what raises or lowers its confidence.")
    aliases: list[str] = Field([], description="Other names.")
    deprecated_by: str = Field("", description="The id or the name of what to use instead.")
    when_not_to_use: str = ""
    is_vouched: bool = Field(False, description="Whether the configuration gave the pins.")


class Item(BaseModel):
    """One item, whole; what is empty is left out."""

    model_config = ConfigDict(extra="forbid")

    id: str
    kind: Kind
    name: str
    source: str
    description: str = ""
    body: str = ""
    server: str = ""
    path: str = ""
    tags: list[str] = []
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    extra: dict[str, Any] = {}
    policy: Policy | None = None


class Ids(_In):
    """Which items to show."""

    ids: list[Text] = Field(max_length=100, examples=[["notes__add_note"]])


class WholeItems(_Out):
    """Some items, whole."""

    items: list[Item]


class Source(_Out):
    """A source as it was last read. Times are in seconds since the epoch."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    name: str
    type: str
    location: str
    items: int
    stale: int = Field(description="Items that are kept though they could not be read.")
    error: str
    seen: float = Field(description="When it was last read whole; 0 for never.")


class Building(_Out):
    """A collection that is being built beside the one in force."""

    collection: str
    done: int
    total: int


class Lengths(_Out):
    """How many jobs there are; null where nobody knows, since the queue is away."""

    saves: int | None
    builds: int | None
    failed: int | None


class Worker(BaseModel):
    """What a worker process last said of itself."""

    model_config = ConfigDict(extra="allow")

    worker: str
    at: float


class Problem(BaseModel):
    """Something that is wrong."""

    model_config = ConfigDict(extra="allow")

    severity: str
    message: str


class Watch(BaseModel):
    """What the watch service last said of itself."""

    model_config = ConfigDict(extra="allow")

    at: float


class Stats(_Out):
    """How the server is."""

    index_version: int
    configuration: str
    collection: str
    model: str
    items: int
    missing: dict[str, str]
    calls_allowed: bool = Field(description="Whether tools may be called through here.")
    sources: list[Source]
    building: Building | None
    queue: Lengths
    workers: list[Worker]
    problems: list[Problem]
    watch: Watch | None
    counters: dict[str, float]


class Alive(_Out):
    """That the process answers."""

    alive: bool


class Ready(_Out):
    """Whether a search can be answered, and what is missing, by part."""

    ready: bool
    missing: dict[str, str] = Field(
        examples=[{"deltas": "Changes are found later than usual: Redis cannot be reached."}]
    )


class Rebuild(_Out):
    """What is being built."""

    configuration: str
    generation: int


class Failed(_Out):
    """A job that failed."""

    id: str
    items: list[str]
    error: str
    at: float
    attempts: int


class Queue(_Out):
    """The jobs."""

    waiting: dict[str, int]
    running: list[dict[str, Any]]
    failed: list[Failed]


class Retried(_Out):
    """How many jobs were put back on the queue."""

    retried: int


class Refusal(_Out):
    """A problem as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str = Field(description="What is wrong, in words.")
    side: Literal["caller", "server", "tool", "us"] = Field(
        description="Whose side it is on: `server` and `tool` are those of a tool that was called."
    )
    error: str = Field("", description="The class of the error, where it was raised on purpose.")


class CallRefusal(Refusal):
    """Why a tool could not be called, or, where the side is `tool`, what it says itself."""

    content: list[dict[str, JsonValue]] = []
    structured_content: JsonValue = None


class CallResult(_Out):
    """What a tool answered, as MCP has it."""

    content: list[dict[str, JsonValue]] = Field(
        description="The blocks of the answer: text, images, links.",
        examples=[[{"type": "text", "text": "Berlin: sun for 3 days"}]],
    )
    structured_content: JsonValue = Field(None, description="The answer as data, if there is any.")
    is_error: bool
