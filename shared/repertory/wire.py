"""The JSON types of the HTTP API, in addition to answers: requests, lists and problems."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from repertory.catalogue.item import Item, Kind
from repertory.index.keywords.document import Entry
from repertory.search.answer import Answer
from repertory.search.links import Links
from repertory.search.query import MAX_QUERY_LENGTH
from repertory.values import MAX_LIMIT, Alpha, Limit, NameWeight, SectionWeight, Threshold

MAX_QUERIES = 100  # per request
MAX_VALUES = 100  # per filter
MAX_IDS = 100  # items per request
MAX_RETRIES = 1_000  # jobs per request
V1 = "/v1"  # where the API begins
RECORDED = "repertory-recorded"  # marks requests that the calling process itself records
EXPORT = "/export"  # where the user's own programs read a collection for a backup
PROJECTS = "/projects"  # the projects of a server with several, each below its key

MaxLimit = Annotated[Limit, Meta(le=MAX_LIMIT)]
# This only documents the limits: the search itself refuses a blank or too long query. The pattern
# lists the characters that are white space to Python but not to JSON Schema.
Text = Annotated[
    str,
    Meta(
        description="Words, a task, or a name.",
        extra_json_schema={"pattern": r"[^\s\x1c-\x1f\x85]", "maxLength": MAX_QUERY_LENGTH},
    ),
]
Kinds = Annotated[tuple[Kind, ...], Meta(max_length=MAX_VALUES, description="Only these kinds.")]
Sources = Annotated[
    tuple[str, ...], Meta(max_length=MAX_VALUES, description="Only these sources, by name.")
]
Servers = Annotated[
    tuple[str, ...], Meta(max_length=MAX_VALUES, description="Only tools of these MCP servers.")
]
Tags = Annotated[
    tuple[str, ...], Meta(max_length=MAX_VALUES, description="Only items with one of these tags.")
]


class Search(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One search; the server's settings apply to missing fields."""

    q: Text
    limit: MaxLimit | None = None
    threshold: Threshold | None = None
    alpha: Alpha | None = None
    name_weight: NameWeight | None = None
    section_weight: SectionWeight | None = None
    kinds: Kinds = ()
    sources: Sources = ()
    servers: Servers = ()
    tags: Tags = ()


class Searches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several searches."""

    queries: Annotated[
        list[Search],
        Meta(
            min_length=1,
            max_length=MAX_QUERIES,
            examples=[[{"q": "rotate API keys", "limit": 5}, {"q": "commit", "kinds": ["tool"]}]],
        ),
    ]


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to several searches, in their order."""

    answers: list[Answer]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One item in a list."""

    id: str
    kind: Kind
    name: str
    source: str
    server: str
    description: str
    path: str
    tags: tuple[str, ...]


def summary(entry: Entry) -> Summary:
    """The summary of an entry."""
    return Summary(**{name: getattr(entry, name) for name in Summary.__struct_fields__})


class Summaries(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a list."""

    items: list[Summary]
    total: Annotated[int, Meta(description="The number of items on all pages.")]


class Ids(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The items to show."""

    ids: Annotated[list[str], Meta(max_length=MAX_IDS, examples=[["notes__add_note"]])]


class LinkedItem(Item, frozen=True, kw_only=True, omit_defaults=True, dict=True, rename="camel"):
    """A complete item with its links.

    Attributes:
        links: The tools that a skill needs, or the skills that need a tool.
    """

    links: Links = Links()


def linked(item: Item, links: Links) -> LinkedItem:
    """An item with its links."""
    return LinkedItem(**msgspec.structs.asdict(item), links=links)


class Items(msgspec.Struct, frozen=True, kw_only=True):
    """Complete items."""

    items: list[Item]


class SkillMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A skill file's path, relative to the sandbox, and its cosine with the query."""

    path: str
    score: float


class RetryRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The failed jobs to try again."""

    ids: Annotated[
        Annotated[list[str], Meta(max_length=MAX_RETRIES)] | None,
        Meta(description="Their ids; null for all.", examples=[["5f1d7a84c2e94b0c"]]),
    ]


class RetriedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The number of failed jobs that will be tried again."""

    retried: int


class Liveness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the process answers.

    Attributes:
        proof: The answer to the challenge in the header ``Repertory-Challenge``, if any.
    """

    alive: bool
    proof: str = ""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a search can be answered."""

    ready: bool
    missing: Annotated[
        dict[str, str],
        Meta(
            description="Unavailable parts, and why.",
            examples=[{"deltas": "Changes are found later than usual: Redis cannot be reached."}],
        ),
    ]


class Refusal(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A problem in the form of RFC 9457."""

    type: str
    title: str
    status: int
    detail: Annotated[str, Meta(description="What is wrong, in words.")]
    side: Annotated[
        Literal["caller", "server", "tool", "us"],
        Meta(
            description="Who caused the failure: `caller`; `us`, this server; for a tool call also "
            "`server`, its MCP server or web API, or `tool`, the tool itself."
        ),
    ]
    error: Annotated[
        str,
        Meta(
            description="The name of the error's class if it is an expected one; "
            "`/functions/search` puts the message here."
        ),
    ] = ""
    content: Annotated[
        list[dict[str, Any]], Meta(description="The answer of a tool that reports a failure.")
    ] = []
    structured_content: Any = None


class WantedProject(msgspec.Struct, frozen=True, kw_only=True):
    """The project that another process of the same user asks this server to serve.

    Attributes:
        directory: Its directory.
        flags: The settings given on the command line, by field; see ``Settings.flags``.
        environment: The environment of the process, with its settings and those of MCP servers.
    """

    directory: str
    flags: dict[str, Any]
    environment: dict[str, str]
