"""The recorded events: searches, and the items that callers read or called. All are bounded."""

import hashlib
import hmac

import msgspec

from repertory.index.keywords.tokens import terms
from repertory.search.answer import Answer
from repertory.text import cut, one_line

MAX_QUERY_LENGTH = 500  # stored characters of a query
READ_LENGTH = 2_000  # characters of a query from which terms are taken
MAX_TERMS = 24  # per query
MAX_HITS = 20  # per answer
MAX_LENGTH = 300  # characters of an id or a caller
DIGEST_LENGTH = 16  # hexadecimal digits of a query's digest; a term's has half as many


class Search(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="search"):
    """An answered search.

    Attributes:
        at: When, in Unix seconds.
        caller: Who searched, such as ``key:NAME``.
        digest: A keyed digest of the query; equal for equal queries.
        terms: Digests of the query's terms.
        query: The query; empty if queries are hashed.
        hits: The ids of the hits, best first.
        copies: The ids of the hits' duplicates.
        confidence: The confidence of the best hit; without hits, of the best item below the
            threshold.
        ms: How long it took, in milliseconds.
        is_degraded: Whether an arm did not answer.
        continues: Whether it continues the caller's previous search, while the query was typed.
    """

    at: float
    caller: str
    digest: str
    terms: tuple[str, ...] = ()
    query: str = ""
    hits: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    confidence: float = 0.0
    ms: float = 0.0
    is_degraded: bool = False
    continues: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        """The ids of all items that the answer names."""
        return self.hits + self.copies


class Use(msgspec.Struct, frozen=True, kw_only=True, tag="use"):
    """A caller read or called an item; ``at`` in Unix seconds."""

    at: float
    caller: str
    item: str


class LostEvents(msgspec.Struct, frozen=True, kw_only=True, tag="lost"):
    """``count`` events before this one were not recorded; ``at`` in Unix seconds."""

    at: float
    count: int


Event = Search | Use | LostEvents


def search_of(
    answer: Answer,
    at: float,
    caller: str,
    seconds: float,
    secret: bytes,
    *,
    has_query: bool,
    continues: bool,
) -> Search:
    """The event for an answered search.

    Args:
        answer: The answer.
        at: When it was given, in Unix seconds.
        caller: Who searched.
        seconds: How long it took.
        secret: The key of the digests.
        has_query: Whether to store the query itself, not only its digests.
        continues: Whether the search continues the caller's previous one.
    """
    query = one_line(answer.query[:READ_LENGTH])
    found = dict.fromkeys(terms(query))
    return Search(
        at=at,
        caller=cut(one_line(caller), MAX_LENGTH),
        digest=_digest(query.casefold(), secret)[:DIGEST_LENGTH],
        terms=tuple(_digest(one, secret)[: DIGEST_LENGTH // 2] for one in [*found][:MAX_TERMS]),
        query=cut(query, MAX_QUERY_LENGTH) if has_query else "",
        hits=tuple(hit.id for hit in answer.hits[:MAX_HITS]),
        copies=tuple(one for hit in answer.hits[:MAX_HITS] for one in hit.duplicates)[:MAX_HITS],
        confidence=answer.hits[0].confidence if answer.hits else answer.best_below,
        ms=round(seconds * 1_000, 1),
        is_degraded=bool(answer.degraded),
        continues=continues,
    )


def use_of(item: str, at: float, caller: str) -> Use:
    """The event for an item that a caller read or called."""
    return Use(at=at, caller=cut(one_line(caller), MAX_LENGTH), item=item)


def _digest(text: str, secret: bytes) -> str:
    return hmac.new(secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
